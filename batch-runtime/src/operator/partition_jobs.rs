//! The jobs whose partitions this process runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::BoundJob;
use crate::ids::JobExecutionId;

/// A job that partitions of this process belong to.
#[derive(Clone)]
pub(super) struct PartitionJob {
    pub(super) fingerprint: String,
    pub(super) bound: Arc<BoundJob>,
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
        jobs.push_back((execution, job.clone()));
        if jobs.len() > KEPT_JOBS {
            jobs.pop_front();
        }
    }
}
