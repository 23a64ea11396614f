//! The interface of a dispatcher, which carries partitions to workers and their events back.

use std::time::Duration;

use super::{DeclinedPartition, PartitionTicket};
use crate::ids::{JobExecutionId, StepExecutionId};

/// Carries the partitions of running steps and flows to worker processes.
///
/// A runtime has one dispatcher, set by
/// [`BatchRuntimeBuilder::partition_dispatcher`](crate::BatchRuntimeBuilder::partition_dispatcher); each running
/// partitioned element opens its own channel.
pub trait PartitionDispatcher: Send + Sync {
    /// Opens a channel for the partitions of one element of a job execution, to the workers of a queue.
    ///
    /// # Errors
    /// If no partition can be dispatched; the element then ends FAILED.
    fn open(
        &self,
        job_execution: JobExecutionId,
        queue: &str,
    ) -> Result<Box<dyn PartitionChannel>, DispatchError>;
}

/// The connection of one element to the workers of its partitions. Dropped when all partitions have ended.
pub trait PartitionChannel {
    /// Submits at least one partition to workers; the rows of the partitions exist. Is called again with a higher `attempt` if a worker has
    /// died, and with the same one if no worker claims a partition, because its ticket may be lost.
    ///
    /// # Errors
    /// If no worker can be reached; the partitions that no worker has claimed then end FAILED.
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError>;

    /// Waits for the next event, at most `wait`. Returns `None` on timeout. With a `wait` of zero, it returns what has arrived, without
    /// asking for more.
    ///
    /// # Errors
    /// If the channel is broken for good. The engine then treats the submitted partitions as lost, and submits no others.
    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError>;

    /// Withdraws the submitted partitions, and requests those that run to stop. A hint: workers learn of it from the repository, too.
    // Spec: PART-25, PART-28
    fn stop(&mut self);
}

/// An event of a submitted partition.
#[derive(Debug)]
#[non_exhaustive]
pub enum PartitionEvent {
    /// The worker has returned; the row records how the partition ended.
    Ended(StepExecutionId),
    /// The worker may be dead. Once its lease has expired, the engine reopens the partition and submits it again. A hint: the engine
    /// looks for expired leases by itself.
    Lost(StepExecutionId),
    /// A worker cannot run the partition.
    Declined(StepExecutionId, DeclinedPartition),
}

/// An error of a dispatcher.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct DispatchError {
    problem: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl DispatchError {
    /// Creates an error. `problem` is a fragment: what failed, and why.
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            source: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}
