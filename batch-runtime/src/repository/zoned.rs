//! A repository whose TIMESTAMP columns hold the wall-clock time of a zone, as a JVM writes it that runs there.
//!
//! What is behind it knows nothing of zones: it is given, and gives, what the clocks show there, and its clock says that too.
//! Keys are made of points in time, before they come here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{
    AbandonOutcome, ArchivedInstance, ChunkTransaction, Claim, ClaimError, ClaimRequest, Connector,
    DeathOutcome, ElementState, Ending, ExecutionFilter, InstanceState, JobRepository, Lease,
    RepositoryError, RestartPosition, Signal, StepHistory, StepState, StopOutcome,
};
use crate::clock::{Clock, Timestamp};
use crate::execution::{JobExecution, JobInstance, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::{JobParameters, ParameterValue};
use crate::time_zone::TimeZone;

/// A repository in a zone; `open` opens the one behind, with its clock.
pub(crate) fn open(
    zone: &TimeZone,
    clock: Arc<dyn Clock>,
    open: impl FnOnce(Arc<dyn Clock>) -> Result<Arc<dyn JobRepository>>,
) -> Result<Arc<dyn JobRepository>> {
    let clock = WallClock {
        clock,
        zone: zone.clone(),
    };
    Ok(Arc::new(Zoned {
        repository: open(Arc::new(clock))?,
        zone: zone.clone(),
    }))
}

type Result<T, E = RepositoryError> = std::result::Result<T, E>;

/// What the clocks show in a zone.
struct WallClock {
    clock: Arc<dyn Clock>,
    zone: TimeZone,
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        self.zone.wall(self.clock.now())
    }
}

/// The repository behind, seen with points in time.
struct Zoned {
    repository: Arc<dyn JobRepository>,
    zone: TimeZone,
}

/// Everything that holds times: both directions go through here, so that none is forgotten in one of them.
trait Times {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp));
}

impl Times for JobExecution {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        change(&mut self.created);
        self.started.as_mut().into_iter().for_each(change);
        self.ended.as_mut().into_iter().for_each(change);
        change(&mut self.last_updated);
    }
}

impl Times for StepExecution {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        change(&mut self.started);
        self.ended.as_mut().into_iter().for_each(change);
        change(&mut self.last_updated);
    }
}

impl Times for ParameterValue {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        if let Self::Date(time) = self {
            change(time);
        }
    }
}

impl Times for JobParameters {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        self.values_mut().for_each(|value| value.each(change));
    }
}

impl Times for ExecutionFilter {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        self.since.as_mut().into_iter().for_each(change);
        self.until.as_mut().into_iter().for_each(change);
    }
}

impl Times for InstanceState {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        self.ended.as_mut().into_iter().for_each(change);
    }
}

impl Times for ArchivedInstance {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        for execution in &mut self.executions {
            change(&mut execution.created);
            execution.started.as_mut().into_iter().for_each(change);
            execution.ended.as_mut().into_iter().for_each(change);
            change(&mut execution.last_updated);
            for parameter in &mut execution.parameters {
                parameter.value.each(change);
            }
            for step in &mut execution.steps {
                change(&mut step.started);
                step.ended.as_mut().into_iter().for_each(change);
                change(&mut step.last_updated);
            }
        }
    }
}

impl<T: Times> Times for Option<T> {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        self.iter_mut().for_each(|one| one.each(change));
    }
}

impl<T: Times> Times for Vec<T> {
    fn each(&mut self, change: &dyn Fn(&mut Timestamp)) {
        self.iter_mut().for_each(|one| one.each(change));
    }
}

impl Zoned {
    /// As the columns hold it.
    fn inward<T: Times>(&self, mut value: T) -> T {
        value.each(&|time| *time = self.zone.wall(*time));
        value
    }

    /// As everybody else knows it.
    fn outward<T: Times>(&self, mut value: T) -> T {
        value.each(&|time| *time = self.zone.instant(*time));
        value
    }

    /// For what changes an execution as well as its row; not, if it fails.
    fn through<T: Times + Clone, R>(
        &self,
        value: &mut T,
        call: impl FnOnce(&mut T) -> Result<R>,
    ) -> Result<R> {
        let mut there = self.inward(value.clone());
        let result = call(&mut there)?;
        *value = self.outward(there);
        Ok(result)
    }

    fn outward_step(&self, found: Option<(StepExecution, StepState)>) -> Option<(StepExecution, StepState)> {
        found.map(|(step, state)| (self.outward(step), state))
    }
}

impl JobRepository for Zoned {
    fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        let mut request = request.clone();
        request.parameters = self.inward(request.parameters);
        let mut claim = self.repository.claim(&request)?;
        claim.execution = self.outward(claim.execution);
        Ok(claim)
    }

    fn begin_job(&self, lease: &Lease, execution: &mut JobExecution) -> Result<bool> {
        self.through(execution, |there| self.repository.begin_job(lease, there))
    }

    fn end_job(&self, lease: &Lease, execution: &mut JobExecution, ending: &Ending) -> Result<bool> {
        self.through(execution, |there| self.repository.end_job(lease, there, ending))
    }

    fn restart_position(&self, execution: &JobExecution) -> Result<Option<RestartPosition>> {
        self.repository.restart_position(execution)
    }

    fn element_states(&self, instance: JobInstanceId) -> Result<BTreeMap<String, ElementState>> {
        self.repository.element_states(instance)
    }

    fn keep_element_states(&self, lease: &Lease, states: &BTreeMap<String, ElementState>) -> Result<()> {
        self.repository.keep_element_states(lease, states)
    }

    fn step_history(
        &self,
        instance: JobInstanceId,
        step_name: &str,
        since: Option<i64>,
    ) -> Result<StepHistory> {
        let mut history = self.repository.step_history(instance, step_name, since)?;
        history.last = self.outward(history.last);
        Ok(history)
    }

    fn create_step(&self, lease: &Lease, name: &str, state: &StepState) -> Result<StepExecution> {
        Ok(self.outward(self.repository.create_step(lease, name, state)?))
    }

    fn begin_step(&self, step: &mut StepExecution) -> Result<()> {
        self.through(step, |there| self.repository.begin_step(there))
    }

    fn claim_step(&self, id: StepExecutionId) -> Result<Option<(StepExecution, StepState)>> {
        Ok(self.outward_step(self.repository.claim_step(id)?))
    }

    fn step(&self, id: StepExecutionId) -> Result<Option<(StepExecution, StepState)>> {
        Ok(self.outward_step(self.repository.step(id)?))
    }

    fn begin_chunk(&self) -> ChunkTransaction {
        self.repository.begin_chunk()
    }

    fn commit_chunk(
        &self,
        tx: &mut ChunkTransaction,
        step: &mut StepExecution,
        counters: StepCounters,
        state: &StepState,
        renew: Option<&Lease>,
    ) -> Result<()> {
        self.through(step, |there| {
            self.repository.commit_chunk(tx, there, counters, state, renew)
        })
    }

    fn end_step(
        &self,
        step: &mut StepExecution,
        ending: &Ending,
        counters: StepCounters,
        state: Option<&StepState>,
    ) -> Result<()> {
        self.through(step, |there| {
            self.repository.end_step(there, ending, counters, state)
        })
    }

    fn renew(&self, lease: &Lease) -> Result<bool> {
        self.repository.renew(lease)
    }

    fn give_up(&self, lease: &Lease) -> Result<()> {
        self.repository.give_up(lease)
    }

    fn is_running(&self, execution: JobExecutionId) -> Result<bool> {
        self.repository.is_running(execution)
    }

    fn lease_time(&self) -> Duration {
        self.repository.lease_time()
    }

    fn signals(&self, executions: &[JobExecutionId]) -> Result<Vec<Signal>> {
        self.repository.signals(executions)
    }

    fn request_stop(&self, execution: JobExecutionId) -> Result<Option<StopOutcome>> {
        self.repository.request_stop(execution)
    }

    fn abandon(&self, execution: JobExecutionId) -> Result<Option<AbandonOutcome>> {
        self.repository.abandon(execution)
    }

    fn declare_dead(&self, execution: JobExecutionId) -> Result<Option<DeathOutcome>> {
        self.repository.declare_dead(execution)
    }

    fn find_executions(&self, filter: &ExecutionFilter) -> Result<Vec<JobExecution>> {
        let filter = self.inward(filter.clone());
        Ok(self.outward(self.repository.find_executions(&filter)?))
    }

    fn instance_states(
        &self,
        job: Option<&str>,
        after: JobInstanceId,
        count: u32,
    ) -> Result<Vec<InstanceState>> {
        Ok(self.outward(self.repository.instance_states(job, after, count)?))
    }

    fn delete_instances(&self, seen: &[InstanceState]) -> Result<u64> {
        self.repository.delete_instances(&self.inward(seen.to_vec()))
    }

    fn archived(&self, instance: JobInstanceId) -> Result<Option<ArchivedInstance>> {
        Ok(self.outward(self.repository.archived(instance)?))
    }

    fn restore(&self, archived: &ArchivedInstance) -> Result<Option<JobInstanceId>> {
        self.repository.restore(&self.inward(archived.clone()))
    }

    fn connector(&self) -> Connector {
        self.repository.connector()
    }

    fn find_instance(&self, job_name: &str, job_key: &str) -> Result<Option<JobInstance>> {
        self.repository.find_instance(job_name, job_key)
    }

    fn instance(&self, id: JobInstanceId) -> Result<Option<JobInstance>> {
        self.repository.instance(id)
    }

    fn instances(&self, job_name: &str, start: i64, count: i64) -> Result<Vec<JobInstance>> {
        self.repository.instances(job_name, start, count)
    }

    fn instance_count(&self, job_name: &str) -> Result<i64> {
        self.repository.instance_count(job_name)
    }

    fn job_names(&self) -> Result<BTreeSet<String>> {
        self.repository.job_names()
    }

    fn execution(&self, id: JobExecutionId) -> Result<Option<JobExecution>> {
        Ok(self.outward(self.repository.execution(id)?))
    }

    fn executions(&self, instance: JobInstanceId) -> Result<Vec<JobExecution>> {
        Ok(self.outward(self.repository.executions(instance)?))
    }

    fn running(&self, job_name: &str) -> Result<Vec<JobExecution>> {
        Ok(self.outward(self.repository.running(job_name)?))
    }

    fn parameters(&self, id: JobExecutionId) -> Result<JobParameters> {
        Ok(self.outward(self.repository.parameters(id)?))
    }

    fn original_parameters(&self, instance: JobInstanceId) -> Result<JobParameters> {
        Ok(self.outward(self.repository.original_parameters(instance)?))
    }

    fn steps(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>> {
        Ok(self.outward(self.repository.steps(execution)?))
    }
}
