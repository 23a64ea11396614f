//! The events of running jobs.

use std::sync::Arc;
use std::time::Duration;

use super::Dataset;
use crate::clock::Timestamp;
#[cfg(doc)]
use crate::execution::OuterStep;
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::status::BatchStatus;

/// An event of a job that runs in this process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The job execution.
    pub job: Arc<ObservedJob>,
    /// The step or partition, for the events of one.
    pub step: Option<Arc<ObservedStep>>,
    /// What happened.
    pub kind: JobEventKind,
}

/// The job execution of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedJob {
    /// The id of the job.
    pub job: String,
    /// The job instance.
    pub instance: JobInstanceId,
    /// The job execution.
    pub execution: JobExecutionId,
    /// Its trace, if an observer [traces](super::JobObserver::trace_job) it.
    pub trace: JobTrace,
    /// The step that runs it, if it is a nested job: see [`OuterStep`]. `None` in the events of a worker's partitions.
    pub outer: Option<Box<ObservedOuter>>,
}

/// The step that runs a nested job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedOuter {
    /// The execution of the outer job. Of its trace only the context is known.
    pub job: ObservedJob,
    /// The name of the step in the repository: `load`, and `load:1` for its first partition.
    pub step: String,
}

/// The trace of a job execution. Contexts have the form of the W3C header `traceparent`, but are not checked: a context may come from
/// another process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobTrace {
    /// The context of the job execution, as the observer returned it; in a worker process, the context of the coordinator.
    pub context: Option<String>,
    /// The context of the execution of the instance before, if that was traced.
    pub previous: Option<String>,
}

/// The step execution of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedStep {
    /// The id of the step, which its partitions share.
    pub step: String,
    /// Its name in the repository: `load`, and `load:1` for its first partition.
    pub name: String,
    /// The id of the step execution or partition.
    pub execution: StepExecutionId,
    /// True for a partition.
    pub is_partition: bool,
    /// Its body.
    pub body: StepBody,
}

/// The body of an observed step or partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepBody {
    /// A chunk.
    Chunk,
    /// A batchlet.
    Batchlet,
    /// Partitions, whose own events follow.
    Partitions,
    /// The steps of a flow, whose own events follow: a partition of a flow.
    Flow,
}

/// The kind of an event, with its details.
///
/// A job execution has one [`JobStarted`](Self::JobStarted), and one [`JobEnded`](Self::JobEnded) or [`JobLost`](Self::JobLost); a step or
/// partition has one [`StepStarted`](Self::StepStarted), and one [`StepEnded`](Self::StepEnded) or [`StepLost`](Self::StepLost). If the
/// process dies, the last ones are missing; the process that closes the execution gets one [`JobClosed`](Self::JobClosed) instead.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum JobEventKind {
    /// The job execution starts to run.
    JobStarted,
    /// The end of the job execution is recorded.
    JobEnded(Box<JobEnd>),
    /// This process stopped running the job execution without recording its end: its lease was lost, or the repository stays unreachable.
    JobLost {
        /// Why.
        cause: String,
    },
    /// The job execution takes the place of one whose process has died: of the same instance, or one that had its turn.
    TookOver {
        /// The job execution of the dead process.
        dead: JobExecutionId,
    },
    /// This process, or an earlier one, closed the job execution, because the process that ran it has died: it was taken over, declared
    /// dead, stopped or abandoned. `job` is this execution, not one that continues it. Emitted when it is closed, and again when another
    /// execution of its instance starts, if a program without observers may have closed it.
    // Spec: OBS-07
    JobClosed(Box<ClosedJob>),
    /// The job execution waits for its turn, because the executions of its job run one at a time. Emitted after `JobStarted`, and again
    /// when it waits for another execution.
    WaitsForTurn {
        /// The job execution that has the turn, or waits longer.
        before: JobExecutionId,
    },
    /// The job execution has its turn, after it waited.
    TurnTaken,
    /// The job execution, or the partition, was requested to stop.
    StopRequested {
        /// Why the runtime stops it: a timeout, or a lost lease. `None` if an operator does.
        cause: Option<String>,
    },
    /// A step, or a partition of it, exceeded its `batch.step.heartbeat`: it is stopped and fails.
    HeartbeatMissed {
        /// The id of the step.
        step: String,
        /// The message of its failure.
        cause: String,
    },
    /// The lease of the job execution, or of the partition, may be lost: it stops.
    LeaseLost {
        /// Why.
        cause: String,
    },
    /// The step or partition starts to run.
    StepStarted {
        /// The counters of the earlier executions of the step in the instance.
        earlier: StepCounters,
    },
    /// The end of the step or partition is recorded.
    StepEnded(Box<StepEnd>),
    /// This process stopped running the step or partition without recording its end.
    StepLost,
    /// An artifact of the step or partition has reported a dataset that it reads or writes. A later one of the same name has more fields.
    DatasetUsed(Box<Dataset>),
    /// The partitions of a step or flow are planned.
    PartitionsPlanned {
        /// The name of the step or flow in the repository.
        element: String,
        /// The number of partitions, including those that are complete already.
        planned: u32,
    },
    /// A partition has ended, in this process or another one, or was complete before.
    PartitionEnded {
        /// The name of the step or flow in the repository.
        element: String,
        /// The number of the partition, from 1.
        partition: u32,
        /// Its status; `None` if its end is not recorded.
        status: Option<BatchStatus>,
    },
    /// The reader has reported the number of its items, including items of earlier executions.
    ItemsCounted {
        /// The number of items.
        items: u64,
    },
    /// A chunk is committed.
    ChunkCommitted {
        /// The counters of the step execution before the chunk.
        before: StepCounters,
        /// The counters of the step execution, with the chunk.
        counters: StepCounters,
        /// The time of its last write, with the commit.
        elapsed: Duration,
    },
    /// A chunk is rolled back.
    ChunkRolledBack {
        /// The counters of the step execution.
        counters: StepCounters,
        /// The error. `None` if a stop request ends the chunk.
        error: Option<String>,
        /// The time of the failed write or commit, if the chunk was complete.
        elapsed: Option<Duration>,
    },
    /// An item is skipped. If the chunk is rolled back afterwards, the item may be skipped again.
    ItemSkipped {
        /// Where it failed.
        phase: ItemPhase,
        /// The error.
        error: String,
    },
    /// An item, or a list of items, is retried.
    ItemRetried {
        /// Where it failed.
        phase: ItemPhase,
        /// The error.
        error: String,
    },
    /// Events were dropped because the observer was too slow. Only that observer gets this event; `job` and `step` are taken from the
    /// previous event.
    EventsDropped {
        /// The number of events.
        count: u64,
    },
}

/// The part of a chunk that an item fails in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemPhase {
    /// The reader.
    Read,
    /// The processor.
    Process,
    /// The writer.
    Write,
}

/// The end of a job execution, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobEnd {
    /// COMPLETED, STOPPED or FAILED.
    pub status: BatchStatus,
    /// The exit status.
    pub exit_status: String,
    /// The exit message: of a failure, its cause.
    pub exit_message: String,
    /// The running time.
    pub elapsed: Duration,
}

/// A job execution whose process has died, as it was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedJob {
    /// The execution: FAILED, STOPPED or ABANDONED.
    pub execution: JobExecution,
    /// The executions of its steps and partitions that were closed with it, in the order of their start.
    pub steps: Vec<StepExecution>,
}

/// The end of a step or partition, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepEnd {
    /// COMPLETED, STOPPED or FAILED.
    pub status: BatchStatus,
    /// The exit status.
    pub exit_status: String,
    /// The exit message: of a failure, its cause.
    pub exit_message: String,
    /// The counters of the step execution.
    pub counters: StepCounters,
    /// The running time.
    pub elapsed: Duration,
}
