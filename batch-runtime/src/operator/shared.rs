//! The state that operators, runners and the keeper of a runtime share.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam::channel::Sender;

use super::partition_jobs::PartitionJobs;
use super::{Callbacks, Definitions, Schema};
use crate::async_runtime::AsyncRuntime;
use crate::context::RuntimeRef;
use crate::dispatch::Dispatchers;
use crate::engine::Running;
use crate::ids::JobExecutionId;
use crate::named_database::NamedDatabase;
use crate::notify::Senders;
use crate::observer::Observers;
use crate::repository::{Claim, JobRepository, Lease, RepositoryUrl};

/// The time that the end of a runtime waits for notifications.
const LAST_NOTIFICATIONS: Duration = Duration::from_secs(5);

/// The state of one runtime.
pub(crate) struct Shared {
    pub(crate) url: RepositoryUrl,
    pub(crate) repository: Arc<dyn JobRepository>,
    pub(crate) definitions: Definitions,
    pub(crate) limits: Limits,
    pub(crate) async_runtime: AsyncRuntime,
    pub(super) schema: Schema,
    pub(super) databases: BTreeMap<String, NamedDatabase>,
    pub(crate) callbacks: Callbacks,
    pub(crate) observers: Arc<Observers>,
    pub(crate) notifications: Arc<Senders>,
    pub(crate) dispatchers: Dispatchers,
    running: Mutex<HashMap<JobExecutionId, Arc<Running>>>,
    pub(super) partition_jobs: PartitionJobs,
    /// The partitions that this process runs for coordinators in others.
    partitions: Mutex<Vec<Arc<Running>>>,
    /// Whether a worker of this runtime runs.
    pub(crate) has_worker: AtomicBool,
    /// Whether a warning of contexts that Java has serialized was logged, or none is needed.
    java_contexts_checked: AtomicBool,
    /// The leases that nothing runs under any more, and that could not be released.
    unreleased: Mutex<Vec<Lease>>,
    // Dropping it ends the keeper.
    _keeper: Sender<()>,
}

/// What the builder sets.
pub(crate) struct SharedSettings {
    pub(crate) url: RepositoryUrl,
    pub(crate) definitions: Definitions,
    pub(crate) limits: Limits,
    pub(crate) async_runtime: AsyncRuntime,
    pub(crate) schema: Schema,
    /// The databases beside the repository, by name.
    pub(crate) databases: BTreeMap<String, NamedDatabase>,
}

/// The limits that the builder sets.
pub(crate) struct Limits {
    pub(crate) stop_timeout: Duration,
    pub(crate) partition_threads: usize,
    pub(crate) crash_limit: u32,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.flush();
        self.repository.close();
    }
}

impl Shared {
    /// Warns, once, if Spring Batch uses the repository with its default serializer: it cannot read what this runtime writes.
    // Spec: REPO-90
    pub(super) fn warn_of_java_contexts(&self) {
        if self.java_contexts_checked.swap(true, Ordering::Relaxed) {
            return;
        }
        if matches!(self.repository.has_java_contexts(), Ok(true)) {
            tracing::warn!(
                "Spring Batch writes the contexts of this repository by Java's serializer, and will not be able to read this execution: give its \
                 job repository an ExecutionContextSerializer of Jackson (Jackson2ExecutionContextStringSerializer in 5, \
                 JacksonExecutionContextStringSerializer in 6)"
            );
        }
    }

    /// Returns the reference for contexts.
    pub(super) fn as_runtime(this: &Arc<Self>) -> RuntimeRef {
        let runtime: Arc<dyn Any + Send + Sync> = Arc::<Self>::clone(this);
        Arc::downgrade(&runtime)
    }

    pub(crate) fn new(
        settings: SharedSettings,
        repository: Arc<dyn JobRepository>,
        observers: Observers,
        notifications: Arc<Senders>,
        dispatchers: Dispatchers,
        keeper: Sender<()>,
    ) -> Self {
        Self {
            url: settings.url,
            repository,
            definitions: settings.definitions,
            limits: settings.limits,
            async_runtime: settings.async_runtime,
            schema: settings.schema,
            databases: settings.databases,
            callbacks: Callbacks::default(),
            observers: Arc::new(observers),
            notifications,
            dispatchers,
            partition_jobs: PartitionJobs::default(),
            running: Mutex::default(),
            partitions: Mutex::default(),
            has_worker: AtomicBool::new(false),
            java_contexts_checked: AtomicBool::new(false),
            unreleased: Mutex::default(),
            _keeper: keeper,
        }
    }

    /// Waits until observers and notification targets have received everything, but not long.
    pub(crate) fn flush(&self) {
        self.observers.drain();
        self.notifications.drain(LAST_NOTIFICATIONS);
    }

    /// Passes on the ends of executions that were closed because their process is dead.
    pub(crate) fn observe_closed(&self, closed: &[JobExecutionId]) {
        self.observers.emit_closed(&*self.repository, closed);
    }

    /// Passes on the ends of the executions that a claim has closed, and the end of the previous execution, which a command without
    /// observers may have closed.
    pub(crate) fn observe_claim(&self, claim: &Claim) {
        if !self.observers.are_any() {
            return;
        }
        self.observe_closed(&claim.taken_over);
        if claim.is_first || !claim.taken_over.is_empty() {
            return;
        }
        match self.repository.job_executions(claim.execution.instance_id) {
            Ok(all) => {
                let before = all
                    .iter()
                    .map(|one| one.id)
                    .filter(|id| *id < claim.execution.id)
                    .max();
                self.observe_closed(before.as_slice());
            }
            Err(error) => tracing::warn!(%error, "the end of the execution before is not observed"),
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

    /// Releases a lease that nothing runs under any more. If that fails, the keeper tries again: on the host of a living owner a lease
    /// does not expire.
    pub(crate) fn release_lease(&self, lease: &Lease) {
        if let Err(error) = self.repository.release_lease(lease) {
            tracing::warn!(execution = %lease.execution_id, %error, "cannot release a lease; trying again");
            self.unreleased().push(*lease);
        }
    }

    /// Releases the leases that could not be released before.
    pub(crate) fn release_again(&self) {
        let mut left = std::mem::take(&mut *self.unreleased());
        left.retain(|lease| self.repository.release_lease(lease).is_err());
        self.unreleased().append(&mut left);
    }

    fn unreleased(&self) -> MutexGuard<'_, Vec<Lease>> {
        self.unreleased.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
