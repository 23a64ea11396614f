//! The operations of the repository, as one trait for each caller. Each call is one transaction; a crash in the middle of
//! one leaves the state before it.

mod archive;
mod launch;
mod notify;
mod operator;
mod overview;
mod partition;
mod queue;
mod runner;

pub(crate) use archive::ArchiveStore;
pub(crate) use launch::LaunchStore;
pub(crate) use notify::NotificationStore;
pub(crate) use operator::OperatorStore;
pub(crate) use overview::{Holder, OverviewStore};
pub(crate) use partition::PartitionStore;
pub(crate) use queue::{Channel, Listener, QueueStore};
pub(crate) use runner::{JobStore, StepStore};

use crate::repository::Result;

/// A repository: what every one can do.
pub(crate) trait JobRepository:
    JobStore + StepStore + OperatorStore + OverviewStore + ArchiveStore + NotificationStore
{
    /// Returns the operations for workers.
    ///
    /// # Errors
    /// `InMemory` if no other process can see the repository.
    fn worker_store(&self) -> Result<&dyn WorkerStore>;
}

/// A repository that worker processes share.
pub(crate) trait WorkerStore: PartitionStore + QueueStore + LaunchStore {}

impl<T: PartitionStore + QueueStore + LaunchStore> WorkerStore for T {}
