//! The rows, and what they mean together.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Timestamp;
use crate::execution::{JobExecution, JobInstance, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::rules;
use crate::repository::{
    DataChanges, JobState, Lease, MAX_VARCHAR, QueuedNotification, RepositoryError, RepositoryLayout, Result,
    StepState, StoredContext,
};

/// All rows.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) instances: BTreeMap<JobInstanceId, Instance>,
    /// The instances of each job by their keys.
    pub(super) keys: HashMap<String, HashMap<String, JobInstanceId>>,
    pub(super) executions: BTreeMap<JobExecutionId, Execution>,
    pub(super) steps: BTreeMap<StepExecutionId, Mutex<Step>>,
    /// The turns of jobs whose executions run one at a time, until the end of the execution.
    // Spec: TURN-02
    pub(super) turns: BTreeMap<JobExecutionId, TurnRow>,
    /// The notifications that are not delivered yet.
    pub(super) notifications: Vec<QueuedNotification>,
    /// The latest ids.
    pub(super) last: LastIds,
}

#[derive(Default)]
pub(super) struct LastIds {
    pub(super) instance: i64,
    execution: i64,
    step: i64,
}

pub(super) struct Instance {
    pub(super) row: JobInstance,
    /// `None` if it was never claimed.
    pub(super) lease: Option<LeaseRow>,
    /// In the order of their ids.
    pub(super) executions: Vec<JobExecutionId>,
}

pub(super) struct LeaseRow {
    /// The execution that it is or was held for.
    pub(super) execution: JobExecutionId,
    /// The number of claims.
    pub(super) fence: i64,
    pub(super) is_held: bool,
}

/// An execution that has the turn of its job, or waits for it.
pub(super) struct TurnRow {
    pub(super) job: String,
    pub(super) is_taken: bool,
}

pub(super) struct Execution {
    pub(super) row: JobExecution,
    pub(super) parameters: JobParameters,
    pub(super) context: Option<Context<JobState>>,
    /// In the order of their ids.
    pub(super) steps: Vec<StepExecutionId>,
    /// The same by their names. Spring Batch may execute a step several times.
    pub(super) by_name: HashMap<String, Vec<StepExecutionId>>,
}

pub(super) struct Step {
    pub(super) row: StepExecution,
    pub(super) context: Option<Context<StepState>>,
}

/// The context of an execution.
pub(super) enum Context<S> {
    State(S),
    /// The context of an imported execution.
    Text(StoredContext),
}

impl Tables {
    /// Returns the instance of a job with this key.
    pub(super) fn instance_with(&self, job: &str, key: &str) -> Option<JobInstanceId> {
        self.keys.get(job)?.get(key).copied()
    }

    /// Inserts an instance under the next id.
    pub(super) fn insert_instance(&mut self, job: &str, key: &str) -> JobInstanceId {
        self.last.instance += 1;
        let id = JobInstanceId(self.last.instance);
        let of_job = self.keys.entry(job.to_owned()).or_default();
        of_job.insert(key.to_owned(), id);
        let instance = Instance {
            row: JobInstance {
                id,
                job_name: job.to_owned(),
                job_key: key.to_owned(),
            },
            lease: None,
            executions: Vec::new(),
        };
        self.instances.insert(id, instance);
        id
    }

    /// Inserts a job execution under the next id, and ignores the id in `row`.
    pub(super) fn insert_execution(
        &mut self,
        mut row: JobExecution,
        parameters: JobParameters,
        context: Option<Context<JobState>>,
    ) -> JobExecutionId {
        self.last.execution += 1;
        let id = JobExecutionId(self.last.execution);
        row.id = id;
        if let Some(instance) = self.instances.get_mut(&row.instance_id) {
            instance.executions.push(id);
        }
        let execution = Execution {
            row,
            parameters,
            context,
            steps: Vec::new(),
            by_name: HashMap::new(),
        };
        self.executions.insert(id, execution);
        id
    }

    /// Inserts a step execution under the next id, and ignores the id in `row`.
    pub(super) fn insert_step(
        &mut self,
        mut row: StepExecution,
        context: Option<Context<StepState>>,
    ) -> StepExecutionId {
        self.last.step += 1;
        let id = StepExecutionId(self.last.step);
        row.id = id;
        if let Some(execution) = self.executions.get_mut(&row.job_execution_id) {
            execution.steps.push(id);
            let of_name = execution.by_name.entry(row.step_name.clone()).or_default();
            of_name.push(id);
        }
        self.steps.insert(id, Mutex::new(Step { row, context }));
        id
    }

    /// Locks a step execution.
    pub(super) fn step(&self, id: StepExecutionId) -> Option<MutexGuard<'_, Step>> {
        let step = self.steps.get(&id)?;
        Some(step.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks a step execution at the version that its runner wrote last.
    pub(super) fn step_at(&self, step: &StepExecution, action: &'static str) -> Result<MutexGuard<'_, Step>> {
        let found = self
            .step(step.id)
            .filter(|found| found.row.version == step.version);
        found.ok_or_else(|| fenced(action))
    }

    /// As `step`, for a caller that has locked all tables.
    pub(super) fn step_mut(&mut self, id: StepExecutionId) -> Option<&mut Step> {
        let step = self.steps.get_mut(&id)?;
        Some(step.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the job executions of an instance, oldest first.
    pub(super) fn executions_of(
        &self,
        instance: JobInstanceId,
    ) -> impl DoubleEndedIterator<Item = &Execution> + Clone {
        let ids = self
            .instances
            .get(&instance)
            .map(|instance| instance.executions.iter());
        ids.into_iter().flatten().filter_map(|id| self.executions.get(id))
    }

    /// Returns the newest job execution of an instance.
    pub(super) fn newest(&self, instance: JobInstanceId) -> Option<&Execution> {
        self.executions_of(instance).next_back()
    }

    /// Returns the lease of an instance.
    pub(super) fn lease_of(&self, instance: JobInstanceId) -> Option<&LeaseRow> {
        self.instances.get(&instance)?.lease.as_ref()
    }

    /// Returns the execution that the instance is held for.
    pub(super) fn held_for(&self, instance: JobInstanceId) -> Option<JobExecutionId> {
        let lease = self.lease_of(instance)?;
        lease.is_held.then_some(lease.execution)
    }

    /// Returns whether the lease is held. There are no leases of partitions, because there are no workers.
    pub(super) fn holds(&self, held: &Lease) -> bool {
        let lease = self.lease_of(held.instance_id);
        held.partition.is_none() && lease.is_some_and(|lease| lease.is_held && lease.fence == held.fence)
    }

    /// Fails if the lease is not held.
    pub(super) fn ensure_held(&self, held: &Lease, action: &'static str) -> Result<()> {
        match self.holds(held) {
            true => Ok(()),
            false => Err(fenced(action)),
        }
    }

    /// Releases the lease if it is held.
    pub(super) fn release(&mut self, held: &Lease) {
        if self.holds(held)
            && let Some(instance) = self.instances.get_mut(&held.instance_id)
            && let Some(lease) = &mut instance.lease
        {
            lease.is_held = false;
        }
    }

    /// Makes a lease that is not held invalid for its last holder.
    pub(super) fn void_lease(&mut self, instance: JobInstanceId) {
        let instance = self.instances.get_mut(&instance);
        if let Some(lease) = instance.and_then(|instance| instance.lease.as_mut()) {
            lease.fence += 1;
        }
    }

    /// Returns the stored state of a job execution.
    pub(super) fn job_state(&self, id: JobExecutionId) -> Result<JobState> {
        self.job_state_if_any(id)?.ok_or_else(|| rules::no_context(id))
    }

    /// Returns the stored state of a job execution; `None` if it has no context.
    pub(super) fn job_state_if_any(&self, id: JobExecutionId) -> Result<Option<JobState>> {
        let execution = self.executions.get(&id);
        match execution.and_then(|execution| execution.context.as_ref()) {
            Some(Context::State(state)) => Ok(Some(state.clone())),
            Some(Context::Text(text)) => match JobState::decode(&text.json(RepositoryLayout::V4_3)) {
                Ok(state) => Ok(Some(state)),
                Err(problem) => Err(corrupt(format!("the context of job execution {id}"), problem)),
            },
            None => Ok(None),
        }
    }

    /// Changes the data of a job execution.
    pub(super) fn change_job_data(&mut self, id: JobExecutionId, changes: &DataChanges) -> Result<()> {
        let mut state = self.job_state(id)?;
        state.change_data(changes);
        if let Some(execution) = self.executions.get_mut(&id) {
            execution.context = Some(Context::State(state));
        }
        Ok(())
    }

    /// Returns the stored state of a step execution.
    pub(super) fn step_state(&self, id: StepExecutionId) -> Result<StepState> {
        self.step(id)
            .map_or(Ok(StepState::default()), |step| step.state())
    }

    /// Closes the open executions and step executions of an instance whose lease is not held. VERSION grows, so that what their threads may
    /// still write is rejected. `cause` is the reason why they cannot be resumed.
    // Spec: OP-35
    pub(super) fn close_open_executions(
        &mut self,
        instance: JobInstanceId,
        now: Timestamp,
        cause: Option<&str>,
    ) -> Vec<JobExecutionId> {
        let of_instance = self
            .instances
            .get(&instance)
            .map(|instance| instance.executions.clone());
        let mut closed = Vec::new();
        for id in of_instance.unwrap_or_default() {
            // Before the job execution: only its open row shows whether the steps were to stop.
            self.close_open_steps(id, now);
            let Some(Execution { row, .. }) = self.executions.get_mut(&id) else {
                continue;
            };
            let Some(ending) = rules::closing(row.status, NO_OWNER) else {
                continue;
            };
            let ending = rules::explained(ending, Some(row.exit_message.as_str()), cause);
            rules::end_job(row, &ending, now, MAX_VARCHAR);
            closed.push(id);
        }
        closed
    }

    /// Closes the open step executions of a job execution, as that is closed.
    fn close_open_steps(&mut self, execution: JobExecutionId, now: Timestamp) {
        let Some(Execution { row, steps, .. }) = self.executions.get(&execution) else {
            return;
        };
        let (status, steps) = (row.status, steps.clone());
        for step in steps {
            let Some(Step { row, .. }) = self.step_mut(step).filter(|step| !step.row.status.is_final())
            else {
                continue;
            };
            let ending = rules::closing(status, NO_OWNER).unwrap_or_else(|| rules::crashed(NO_OWNER));
            rules::end_step(row, &ending, now, MAX_VARCHAR);
        }
    }
}

/// The owner of an execution whose lease was released before its end was recorded.
const NO_OWNER: &str = "unknown";

impl Step {
    /// Returns the stored state.
    pub(super) fn state(&self) -> Result<StepState> {
        match &self.context {
            Some(Context::State(state)) => Ok(state.clone()),
            Some(Context::Text(text)) => {
                StepState::decode(&text.json(RepositoryLayout::V4_3)).map_err(|problem| {
                    corrupt(format!("the context of step execution {}", self.row.id), problem)
                })
            }
            // Without a context row the step starts without a checkpoint. Spec: RESTART-17
            None => Ok(StepState::default()),
        }
    }

    /// Returns the place of the stored state, which the caller overwrites.
    ///
    /// # Errors
    /// If there is no context: without it the checkpoint would be lost silently.
    pub(super) fn state_mut(&mut self) -> Result<&mut StepState> {
        if let Some(Context::Text(_)) = self.context {
            self.context = Some(Context::State(StepState::default()));
        }
        match &mut self.context {
            Some(Context::State(state)) => Ok(state),
            _ => Err(corrupt(
                format!("the context of step execution {}", self.row.id),
                "has been deleted while the step was running",
            )),
        }
    }
}

/// Returns the rejection of a write because the execution was closed.
// Spec: REPO-15
pub(super) fn fenced(action: &'static str) -> RepositoryError {
    RepositoryError::Fenced { action }
}

pub(super) fn corrupt(
    row: String,
    problem: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> RepositoryError {
    RepositoryError::Corrupt {
        row,
        problem: problem.into(),
    }
}
