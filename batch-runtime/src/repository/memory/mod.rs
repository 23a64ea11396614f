//! The job repository in the memory of this process: the same rows and rules as on a database, without a database.
//!
//! `tables.rs` holds the rows. A lock on all tables is shared by operations that change one step execution only, such as a commit: each of
//! these has its own lock. Any other change has the tables alone.
//!
//! Its only owner is this process, so a lease never expires: it is held until it is released.
// Spec: MEM-01

mod archive_store;
mod claim;
mod job_store;
mod notifications;
mod operator_store;
mod overview_store;
mod step_store;
mod tables;
#[cfg(all(test, feature = "sqlite"))]
mod tests;
mod turns;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::owner::Owner;
use crate::clock::{Clock, Timestamp};
use crate::notify::NotificationRules;
use crate::repository::{
    JobRepository, RepositoryConfig, RepositoryError, RepositoryFormat, Result, WorkerStore,
};
use tables::Tables;

/// A repository in memory.
struct MemoryRepository {
    tables: RwLock<Tables>,
    owner: Owner,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
    notifications: NotificationRules,
    format: RepositoryFormat,
}

/// Creates an empty repository.
pub(crate) fn create(config: RepositoryConfig) -> Arc<dyn JobRepository> {
    Arc::new(MemoryRepository {
        tables: RwLock::default(),
        owner: Owner::new(None, 0),
        clock: config.clock,
        lease_time: config.lease_time,
        notifications: config.notifications,
        format: RepositoryFormat::default(),
    })
}

impl JobRepository for MemoryRepository {
    fn worker_store(&self) -> Result<&dyn WorkerStore> {
        Err(RepositoryError::InMemory {
            missing: "workers, because no other process can see it",
        })
    }
}

impl MemoryRepository {
    /// Shares the tables with others that read them or change one step execution.
    fn shared(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tables.
    fn alone(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
