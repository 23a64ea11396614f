//! Job executions: their start and end, their lease, the states of their elements.

use std::time::Duration;

use super::MemoryRepository;
use super::tables::fenced;
use super::tables::{Context, Execution, Tables};
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::rules;
use crate::repository::{
    Claim, ClaimError, ClaimRequest, Connector, DataChanges, ElementState, Ending, JobState, JobStore,
    KeptState, Lease, MAX_VARCHAR, RepositoryFormat, Result, Signals, TurnOutcome,
};
use crate::status::BatchStatus;

impl JobStore for MemoryRepository {
    fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        self.claim_instance(request)
    }

    fn take_turn(&self, lease: &Lease, job_name: &str) -> Result<TurnOutcome> {
        Ok(self.take_turn_of_job(lease.execution_id, job_name))
    }

    fn pass_turn(&self, execution: JobExecutionId) -> Result<Option<Vec<JobExecutionId>>> {
        Ok(self.pass_turn_of(execution))
    }

    fn begin_job(&self, lease: &Lease, execution: &mut JobExecution) -> Result<bool> {
        let mut tables = self.alone();
        if is_changed(&tables, lease, execution, "record the start of the job execution")? {
            return Ok(false);
        }
        rules::begin_job(execution, self.now());
        if let Some(stored) = tables.executions.get_mut(&execution.id) {
            stored.row.clone_from(execution);
        }
        Ok(true)
    }

    fn end_job(&self, lease: &Lease, execution: &mut JobExecution, ending: &Ending) -> Result<bool> {
        const ACTION: &str = "record the end of the job execution";
        let mut tables = self.alone();
        if is_changed(&tables, lease, execution, ACTION)? {
            return Ok(false);
        }
        tables.ensure_held(lease, ACTION)?;
        // Before the lease is released, because a context that cannot be read is an error, and nothing is rolled
        // back here.
        let context = match &ending.restart {
            Some(restart) => Some(JobState {
                restart: Some(restart.clone()),
                ..tables.job_state(execution.id)?
            }),
            None => None,
        };
        tables.release(lease);
        rules::end_job(execution, ending, self.now(), MAX_VARCHAR);
        if let Some(stored) = tables.executions.get_mut(&execution.id) {
            stored.row.clone_from(execution);
            stored.context = context.map(Context::State).or(stored.context.take());
        }
        self.notify_of_end(&mut tables, execution, ending.status);
        Ok(true)
    }

    fn kept_state(&self, lease: &Lease) -> Result<KeptState> {
        let tables = self.shared();
        let mut kept = KeptState::default();
        for Execution { row, .. } in tables.executions_of(lease.instance_id) {
            let is_before = row.id < lease.execution_id;
            let is_stopped = row.status == BatchStatus::Stopped;
            kept.add(tables.job_state(row.id)?, is_before, is_stopped);
        }
        Ok(kept)
    }

    fn save_job_data(&self, lease: &Lease, changes: &DataChanges) -> Result<()> {
        let mut tables = self.alone();
        tables.ensure_held(lease, "record the data of the job")?;
        tables.change_job_data(lease.execution_id, changes)
    }

    fn save_element_state(&self, lease: &Lease, element: &str, state: &ElementState) -> Result<()> {
        let mut tables = self.alone();
        tables.ensure_held(lease, "record the state of a parallel element")?;
        let mut stored = tables.job_state(lease.execution_id)?;
        stored.restart = None;
        stored.elements.insert(element.to_owned(), state.clone());
        if let Some(execution) = tables.executions.get_mut(&lease.execution_id) {
            execution.context = Some(Context::State(stored));
        }
        Ok(())
    }

    fn renew_lease(&self, lease: &Lease) -> Result<bool> {
        Ok(self.shared().holds(lease))
    }

    fn release_lease(&self, lease: &Lease) -> Result<()> {
        self.alone().release(lease);
        Ok(())
    }

    fn lease_time(&self) -> Duration {
        self.lease_time
    }

    fn owner_name(&self) -> &str {
        self.owner.name()
    }

    fn signals(&self, executions: &[JobExecutionId], partitions: &[StepExecutionId]) -> Result<Signals> {
        let tables = self.shared();
        let is_stopping = |status| status == BatchStatus::Stopping;
        let of_execution = |id: &&JobExecutionId| {
            let status = tables.executions.get(*id).map(|execution| execution.row.status);
            matches!(status, Some(BatchStatus::Stopping | BatchStatus::Stopped))
        };
        let of_partition =
            |id: &&StepExecutionId| tables.step(**id).is_some_and(|step| is_stopping(step.row.status));
        Ok(Signals {
            executions: executions.iter().filter(of_execution).copied().collect(),
            partitions: partitions.iter().filter(of_partition).copied().collect(),
        })
    }

    fn connector(&self) -> Connector {
        Connector::without_database()
    }

    fn format(&self) -> &RepositoryFormat {
        &self.format
    }
}

/// Returns whether a stop was requested, which the runner adopts: `execution` then shows it. Fails if another runner has the instance.
// Spec: REPO-17
fn is_changed(
    tables: &Tables,
    lease: &Lease,
    execution: &mut JobExecution,
    action: &'static str,
) -> Result<bool> {
    let current = tables
        .executions
        .get(&execution.id)
        .ok_or_else(|| fenced(action))?;
    if current.row.version == execution.version {
        return Ok(false);
    }
    if !rules::is_stop_request(current.row.status, tables.holds(lease)) {
        return Err(fenced(action));
    }
    execution.clone_from(&current.row);
    Ok(true)
}
