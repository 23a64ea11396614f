//! The jobs whose partitions this process runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{BoundJob, States};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::{ClaimedPartition, JobRepository, RepositoryError};

/// A job that partitions of this process belong to.
#[derive(Clone)]
pub(super) struct PartitionJob {
    pub(super) fingerprint: String,
    pub(super) bound: Arc<BoundJob>,
    /// Whether the job execution is the first one of its instance.
    pub(super) is_first: bool,
    /// The trace context of the job execution, as stored; `None` without observers, and if the tickets carry it.
    pub(super) traceparent: Option<String>,
    states: Arc<Mutex<Option<KnownStates>>>,
}

/// The states of the elements, with the latest step execution that existed when they were read.
#[derive(Clone)]
struct KnownStates {
    latest: StepExecutionId,
    states: Arc<States>,
}

impl PartitionJob {
    pub(super) fn new(
        fingerprint: String,
        bound: BoundJob,
        is_first: bool,
        traceparent: Option<String>,
    ) -> Self {
        Self {
            fingerprint,
            bound: Arc::new(bound),
            is_first,
            traceparent,
            states: Arc::default(),
        }
    }

    /// Returns the states of the elements for a claimed partition. Its plan was stored before its row, and is not replaced before it ends,
    /// so states that were read when the row existed are valid for it. An earlier worker of a flow may have stored others.
    pub(super) fn states_for(
        &self,
        repository: &dyn JobRepository,
        claimed: &ClaimedPartition,
    ) -> Result<Arc<States>, RepositoryError> {
        let mut known = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first_claim = claimed.row.version <= 1;
        let is_valid = |known: &&KnownStates| is_first_claim && known.latest >= claimed.row.id;
        if let Some(valid) = known.as_ref().filter(is_valid) {
            return Ok(Arc::clone(&valid.states));
        }
        let latest = repository.latest_step(claimed.lease.execution_id)?;
        let states = Arc::new(States::new(
            repository.kept_state(&claimed.lease)?,
            repository.format().layout,
        ));
        *known = Some(KnownStates {
            latest: latest.unwrap_or(claimed.row.id),
            states: Arc::clone(&states),
        });
        Ok(states)
    }
}

/// The number of jobs that a worker keeps. Most of its partitions belong to few executions.
const KEPT_JOBS: usize = 8;

/// The jobs of the latest partitions: resolving one takes longer than a short partition.
#[derive(Default)]
pub(super) struct PartitionJobs(Mutex<VecDeque<(JobExecutionId, PartitionJob)>>);

impl PartitionJobs {
    pub(super) fn get(&self, execution: JobExecutionId) -> Option<PartitionJob> {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = jobs.iter().filter(|(of, _)| *of == execution);
        found.next().map(|(_, job)| job.clone())
    }

    pub(super) fn keep(&self, execution: JobExecutionId, job: &PartitionJob) {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Slots that started together may have resolved it, too.
        jobs.retain(|(of, _)| *of != execution);
        jobs.push_back((execution, job.clone()));
        if jobs.len() > KEPT_JOBS {
            jobs.pop_front();
        }
    }
}
