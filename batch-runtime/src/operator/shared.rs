//! The state that operators, runners and the keeper of a runtime share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam::channel::Sender;

use super::partition_jobs::PartitionJobs;
use super::{Callbacks, Definitions};
use crate::dispatch::Dispatchers;
use crate::engine::Running;
use crate::ids::JobExecutionId;
use crate::repository::JobRepository;

/// The state of one runtime.
pub(crate) struct Shared {
    pub(crate) repository: Arc<dyn JobRepository>,
    pub(crate) definitions: Definitions,
    pub(crate) limits: Limits,
    pub(crate) callbacks: Callbacks,
    pub(crate) dispatchers: Dispatchers,
    running: Mutex<HashMap<JobExecutionId, Arc<Running>>>,
    pub(super) partition_jobs: PartitionJobs,
    /// The partitions that this process runs for coordinators in others.
    partitions: Mutex<Vec<Arc<Running>>>,
    // Dropping it ends the keeper.
    _keeper: Sender<()>,
}

/// The limits that the builder sets.
pub(crate) struct Limits {
    pub(crate) stop_timeout: Duration,
    pub(crate) partition_threads: usize,
    pub(crate) crash_limit: u32,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.repository.close();
    }
}

impl Shared {
    pub(crate) fn new(
        repository: Arc<dyn JobRepository>,
        definitions: Definitions,
        limits: Limits,
        dispatchers: Dispatchers,
        keeper: Sender<()>,
    ) -> Self {
        Self {
            repository,
            definitions,
            limits,
            callbacks: Callbacks::default(),
            dispatchers,
            partition_jobs: PartitionJobs::default(),
            running: Mutex::default(),
            partitions: Mutex::default(),
            _keeper: keeper,
        }
    }

    /// Returns the job executions that run in this process.
    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<JobExecutionId, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the partitions that this process runs for coordinators in others.
    pub(crate) fn partitions(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
