//! The interface of a transport, which connects coordinators with workers.

use std::time::Duration;

use super::{DeclinedPartition, DispatchError, PartitionDispatcher, PartitionTicket};
use crate::ids::StepExecutionId;

/// Carries tickets from coordinators to workers, and reports back: a [`PartitionDispatcher`] with the side of the workers.
///
/// Set by [`BatchRuntimeBuilder::partition_transport`](crate::BatchRuntimeBuilder::partition_transport), and used by
/// [`BatchRuntime::worker`](crate::BatchRuntime::worker). A transport may deliver a ticket twice, or lose it: the repository
/// decides who runs a partition, and a coordinator submits a partition again that no worker claims.
pub trait PartitionTransport: PartitionDispatcher {
    /// Connects a worker to a queue.
    ///
    /// # Errors
    /// If the transport cannot be reached, or rejects this program.
    fn connect_worker(&self, queue: &str) -> Result<Box<dyn PartitionSource>, DispatchError>;

    /// Returns whether processes of other hosts use the transport, which a SQLite repository cannot serve. Default: `false`.
    fn connects_hosts(&self) -> bool {
        false
    }
}

/// The connection of a worker process to a queue.
pub trait PartitionSource: Send {
    /// Waits at most `wait` for tickets, and returns at most `count` of them.
    ///
    /// # Errors
    /// If the transport cannot be reached. The worker tries again.
    fn take(&mut self, count: u32, wait: Duration) -> Result<Vec<Box<dyn PartitionDelivery>>, DispatchError>;

    /// Returns the partitions that coordinators have requested to stop since the last call. A hint, which makes a stop faster: workers
    /// learn of it from the repository, too. By default there are none.
    fn stop_requests(&mut self) -> Vec<StepExecutionId> {
        Vec::new()
    }
}

/// A ticket that a worker has taken.
pub trait PartitionDelivery: Send + Sync {
    /// Returns the ticket.
    fn ticket(&self) -> &PartitionTicket;

    /// Keeps the transport from delivering the ticket to another worker. Called every few seconds while the partition runs.
    ///
    /// # Errors
    /// If the transport cannot be reached. The partition continues: its lease decides.
    fn extend(&self) -> Result<(), DispatchError> {
        Ok(())
    }

    /// Reports that the end of the partition is recorded, and that the ticket is done.
    ///
    /// # Errors
    /// If it cannot be sent; the coordinator finds the end in the repository.
    fn ended(&self) -> Result<(), DispatchError>;

    /// Reports why this worker cannot run the partition, and leaves the ticket to others at once, and to this worker after `wait`.
    ///
    /// # Errors
    /// If it cannot be sent; the coordinator submits the partition again.
    fn decline(&self, reason: &DeclinedPartition, wait: Duration) -> Result<(), DispatchError>;

    /// Leaves the ticket to any worker after `wait`: this one drains, and the partition resumes from its checkpoint, or it cannot run the
    /// partition now.
    ///
    /// # Errors
    /// If it cannot be sent; the coordinator submits the partition again.
    fn hand_back(&self, wait: Duration) -> Result<(), DispatchError>;

    /// Ends the delivery without a report: another worker has claimed the partition, or it has ended.
    ///
    /// # Errors
    /// If the transport cannot be reached. It may deliver the ticket again.
    fn discard(&self) -> Result<(), DispatchError>;
}
