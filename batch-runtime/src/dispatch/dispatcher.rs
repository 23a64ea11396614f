//! What carries partitions to workers, and what comes back.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::PartitionTicket;
use crate::artifact::CollectorData;
use crate::ids::{JobExecutionId, StepExecutionId};

/// Carries the partitions of running steps and flows to worker processes.
///
/// A runtime has one dispatcher, set by
/// [`BatchRuntimeBuilder::partition_dispatcher`](crate::BatchRuntimeBuilder::partition_dispatcher); each partitioned element
/// that runs opens a channel of its own.
pub trait PartitionDispatcher: Send + Sync {
    /// Opens a channel for the partitions of one element of a job execution.
    ///
    /// # Errors
    /// If no partition can be dispatched; the element then ends FAILED.
    fn open(&self, job_execution: JobExecutionId) -> Result<Box<dyn PartitionChannel>, DispatchError>;
}

/// The partitions of one element on their way to workers and back. Dropped when all of them have ended.
pub trait PartitionChannel {
    /// Hands a partition to a worker. Its row exists. May be called again with a higher `attempt` after
    /// [`PartitionEvent::Lost`].
    ///
    /// # Errors
    /// If no worker can get it; the partition then ends FAILED.
    fn submit(&mut self, ticket: &PartitionTicket) -> Result<(), DispatchError>;

    /// Waits for the next event, at most `wait`; `None` if there is none by then. The events of one partition come in their
    /// order, [`PartitionEvent::Ended`] last. Spec: SUBJOB-11
    ///
    /// # Errors
    /// If no event can come any more. The engine then reports the partitions that are out as lost, and submits no others.
    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError>;

    /// Asks the partitions that are out to stop. A hint: a stop of the whole job also reaches workers through the repository.
    /// Spec: PART-25, PART-28
    fn stop(&mut self);
}

/// What happened to a partition that is out.
#[derive(Debug)]
#[non_exhaustive]
pub enum PartitionEvent {
    /// The partition's collector sent a payload.
    Collected(CollectedPayload),
    /// The worker has returned; the row says how the partition ended.
    Ended(StepExecutionId),
    /// The worker may be dead. Once its lease has expired, the engine reopens the partition and submits it again.
    Lost(StepExecutionId),
}

/// A payload of a collector, with what a transport needs to deliver it once: of payloads with the same three numbers it passes on
/// the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectedPayload {
    /// The partition.
    pub step_execution: StepExecutionId,
    /// The attempt of the ticket.
    pub attempt: u32,
    /// Counts the payloads of the attempt from 1.
    pub sequence: u64,
    /// The payload.
    pub data: CollectorData,
}

/// An error of a dispatcher.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct DispatchError {
    problem: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl DispatchError {
    /// Creates an error. `problem` is a fragment that says what failed and why.
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
