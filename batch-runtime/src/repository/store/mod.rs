//! The operations of the repository, as one trait for each caller. Each call is one transaction; a crash in the middle of
//! one leaves the state before it.

mod archive;
mod launch;
mod notify;
mod operator;
mod overview;
mod queue;
mod runner;

pub(crate) use archive::ArchiveStore;
pub(crate) use launch::LaunchStore;
pub(crate) use notify::NotificationStore;
pub(crate) use operator::OperatorStore;
pub(crate) use overview::{Holder, OverviewStore};
pub(crate) use queue::{Channel, Listener, QueueStore};
pub(crate) use runner::{JobStore, StepStore};

/// A repository: the stores of all callers on one database.
pub(crate) trait JobRepository:
    JobStore
    + StepStore
    + OperatorStore
    + OverviewStore
    + ArchiveStore
    + QueueStore
    + LaunchStore
    + NotificationStore
{
}

impl<T> JobRepository for T where
    T: JobStore
        + StepStore
        + OperatorStore
        + OverviewStore
        + ArchiveStore
        + QueueStore
        + LaunchStore
        + NotificationStore
{
}
