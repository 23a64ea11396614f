//! The messages between coordinator and worker: one line of JSON each.

use batch_runtime::partition::PartitionTicket;
use batch_runtime::{BatchStatus, StepExecutionId};
use serde::{Deserialize, Serialize};

/// From the coordinator to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Run the partition of this ticket.
    Run(PartitionTicket),
    /// Stop the running partitions.
    Stop,
}

/// From a worker to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The worker is alive.
    Alive,
    /// The partition has ended, and its end is recorded.
    Ended(StepExecutionId, Recorded),
    /// The worker does not run the partition, or could not record its end.
    Failed(StepExecutionId, String),
}

/// How a partition ended, for people; the repository decides.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Recorded(pub(crate) String);

impl From<BatchStatus> for Recorded {
    fn from(status: BatchStatus) -> Self {
        Self(status.to_string())
    }
}
