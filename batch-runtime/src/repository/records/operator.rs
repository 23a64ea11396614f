//! The requests of an operator and their outcomes.

use crate::clock::Timestamp;
use crate::ids::JobExecutionId;
use crate::status::BatchStatus;

/// The outcome of a request to abandon an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AbandonOutcome {
    /// The execution is ABANDONED; its instance cannot be restarted.
    Abandoned,
    /// The execution is running.
    Running {
        /// The lease holder.
        owner: String,
    },
    /// An execution of the instance ended COMPLETED.
    Complete,
}

/// The outcome of accepting an execution whose status is UNKNOWN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptOutcome {
    /// The execution is FAILED, as are its step executions that were UNKNOWN; its instance can be restarted.
    Accepted,
    /// Neither it nor one of its step executions is UNKNOWN.
    Known,
}

/// The outcome of an operator declaring a process dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeathOutcome {
    /// The execution is closed; its instance can be restarted.
    Closed,
    /// The execution is running: its lease is held.
    Running {
        /// The lease holder.
        owner: String,
    },
    /// The execution had ended before.
    Ended,
}

/// A filter for job executions. A field that is `None` or empty matches all.
#[derive(Clone, Debug, Default)]
pub struct ExecutionFilter {
    /// The job.
    pub job: Option<String>,
    /// The batch statuses.
    pub statuses: Vec<BatchStatus>,
    /// The earliest creation time, inclusive.
    pub since: Option<Timestamp>,
    /// The latest creation time, exclusive.
    pub until: Option<Timestamp>,
    /// The earliest time of the end, inclusive; executions that have not ended do not match.
    pub ended_since: Option<Timestamp>,
    /// Only executions older than this one, exclusive: in a paged list, the next page.
    pub before: Option<JobExecutionId>,
    /// Only executions newer than this one, exclusive. The limit then selects the nearest ones: in a paged list, the previous page.
    // Spec: CON-01
    pub after: Option<JobExecutionId>,
    /// The most executions to return, newest first.
    pub limit: Option<u32>,
}

/// The numbers of rows of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositorySize {
    /// Job instances.
    pub job_instances: u64,
    /// Job executions.
    pub job_executions: u64,
    /// Step executions, including partitions.
    pub step_executions: u64,
}

/// The outcome of a stop request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopOutcome {
    /// The request is recorded; the runner will see it.
    Requested,
    /// The runner is dead; the execution is closed as STOPPED.
    Closed,
    /// The execution had ended before.
    NotRunning,
}
