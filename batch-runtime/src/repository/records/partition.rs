//! Partitions in worker processes, and the workers.

use super::claim::Lease;
use crate::execution::StepExecution;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::StepState;

/// A partition that a worker process has claimed.
#[derive(Clone, Debug)]
pub(crate) struct ClaimedPartition {
    /// The step execution, in status STARTED.
    pub(crate) row: StepExecution,
    /// Its stored state.
    pub(crate) state: StepState,
    /// The right to run it.
    pub(crate) lease: Lease,
}

/// What becomes of the open steps within a partition whose worker is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InnerSteps {
    /// There are none: it is a partition of a step.
    None,
    /// They are reopened with the partition, and its next worker resumes them.
    Reopen,
    /// They end with the partition. A logical transaction within it has to be rolled back first, which only another job execution does.
    Close,
}

/// The state of a partition whose worker may be dead.
#[derive(Clone, Debug)]
pub(crate) enum PartitionState {
    /// The partition has ended, or never was claimed by a worker process.
    Settled,
    /// Its lease is held.
    Held,
    /// Its worker was dead; the step execution is STARTING again, for another worker.
    Reopened {
        /// The number of claims so far.
        claims: i64,
        /// The worker that died, and the number of chunks that it and those before it have committed; `None` if no worker has claimed the
        /// partition.
        died: Option<(String, i64)>,
    },
}

/// The job executions and partitions that are requested to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    pub(crate) executions: Vec<JobExecutionId>,
    pub(crate) partitions: Vec<StepExecutionId>,
}

/// A partition in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedPartition {
    pub(crate) step_execution: StepExecutionId,
    pub(crate) job_execution: JobExecutionId,
    pub(crate) attempt: u32,
    pub(crate) fingerprint: String,
}

/// A report of a worker on a partition, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionReport {
    pub(crate) step_execution: StepExecutionId,
    pub(crate) job_execution: JobExecutionId,
    /// The claim of a payload; 0 for other reports.
    pub(crate) claim: i64,
    /// Counts the payloads of a claim from 1.
    pub(crate) number: u64,
    pub(crate) report: String,
}

impl PartitionReport {
    /// Returns the key of a payload, which grows with each payload of a partition.
    pub(crate) fn key(&self) -> PayloadKey {
        (self.claim, self.number)
    }

    /// The number of the report that a partition has ended, which follows all others.
    pub(crate) const END: u64 = i64::MAX as u64;
    /// The number of the report that a worker cannot run the partition. Payloads are numbered from 1.
    pub(crate) const DECLINED: u64 = 0;
}

/// The claim of a partition, and the number of a payload within it.
pub(crate) type PayloadKey = (i64, u64);

/// A submitted partition that no living worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionFinding {
    /// No worker has claimed it.
    Unclaimed(StepExecutionId),
    /// The lease of its worker has expired, or the worker is dead.
    LeaseLost(StepExecutionId),
    /// Its end is recorded.
    Ended(StepExecutionId),
}

/// A worker process, as registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerRow {
    /// The owner of its leases.
    pub(crate) name: String,
    pub(crate) queue: String,
    pub(crate) slots: u32,
    pub(crate) version: String,
    pub(crate) is_draining: bool,
    /// When it was started, and when the registration expires, by the clock of the database in milliseconds.
    pub(crate) started: i64,
    pub(crate) expires: i64,
    /// True if the registration has not expired, and its process has not ended as far as this host sees.
    pub(crate) is_alive: bool,
    /// The partitions that it runs.
    pub(crate) partitions: Vec<(JobExecutionId, StepExecutionId)>,
}
