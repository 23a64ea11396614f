//! The configuration and the start of a worker.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use thiserror::Error;

use super::launches::Launches;
use super::{Running, State, Worker};
use crate::dispatch::{DEFAULT_QUEUE, DispatchError, LOCAL, REPOSITORY, choices};
use crate::error::error_chain;
use crate::operator::RemoteProblem;
use crate::repository::{RepositoryError, WorkerRow};
use crate::runtime::BatchRuntime;
use crate::thread;

/// Configures a worker. Created by [`BatchRuntime::worker`].
#[derive(Clone)]
#[must_use]
pub struct WorkerBuilder {
    runtime: BatchRuntime,
    queue: String,
    slots: u32,
    jobs: Option<u32>,
    transport: Option<String>,
}

impl BatchRuntime {
    /// Returns the configuration of a worker of this process: it runs partitions of jobs whose coordinators are other processes with
    /// the same repository. It needs the artifacts, the Job XML and the system properties of the coordinators.
    ///
    /// ```no_run
    /// use batch_runtime::BatchRuntime;
    ///
    /// let runtime = BatchRuntime::builder().repository("postgres://batch@db/batch").build()?;
    /// let worker = runtime.worker().slots(8).start()?;
    /// // On SIGTERM: worker.drain();
    /// worker.wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker(&self) -> WorkerBuilder {
        let slots = std::thread::available_parallelism().map_or(1, |processors| processors.get());
        WorkerBuilder {
            runtime: self.clone(),
            queue: DEFAULT_QUEUE.into(),
            slots: u32::try_from(slots).unwrap_or(1),
            jobs: None,
            transport: None,
        }
    }
}

impl WorkerBuilder {
    /// Sets the queue that it takes partitions and launches from. Default: `default`. The property `batch.dispatch.queue` of a step or job
    /// chooses the queue of its partitions.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queue = name.into();
        self
    }

    /// Sets how many partitions run at the same time, at least 1. Default: the number of processors.
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Sets how many [launches](crate::JobOperator::launch_remote) run at the same time, beside the partitions: their coordinators mostly
    /// wait. Default: as many as slots. With 0 it runs no launches.
    pub fn jobs(mut self, jobs: u32) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Sets the transport that it takes partitions from. Default: the runtime's
    /// [`dispatch`](crate::BatchRuntimeBuilder::dispatch), or `repository` if that is `local`.
    pub fn transport(mut self, name: impl Into<String>) -> Self {
        self.transport = Some(name.into());
        self
    }

    /// Registers the worker and starts to take partitions.
    ///
    /// # Errors
    /// If it has no slots, the name of the queue is invalid, the transport is unknown or cannot be reached, the clocks of this host and the
    /// database differ by more than 10 s, the repository is `memory:` or a SQLite file that another host uses, the runtime has a worker
    /// already, or the repository fails.
    pub fn start(self) -> Result<Worker, WorkerError> {
        if self.slots == 0 {
            return Err(WorkerError::NoSlots);
        }
        let shared = self.runtime.shared();
        let dispatchers = &shared.dispatchers;
        let name = self.transport_name();
        let transport = dispatchers
            .transports
            .get(name)
            .ok_or_else(|| WorkerError::UnknownTransport {
                name: name.to_owned(),
                known: dispatchers.transports.keys().cloned().collect(),
            })?;
        self.runtime.job_operator().check_remote(&self.queue)?;
        let only = OnlyWorker::of(&self.runtime)?;
        let source = transport.connect_worker(&self.queue)?;
        let state = Arc::new(State::new());
        let launches = Launches::new(
            self.runtime.clone(),
            self.queue.clone(),
            self.jobs.unwrap_or(self.slots),
            Arc::clone(&state.launches),
        );
        let row = registration(shared.repository.owner_name(), &self.queue, self.slots);
        shared.repository.worker_store()?.register_worker(&row)?;
        let worker = Running::new(self.runtime.clone(), row, Arc::clone(&state), launches, source);
        let run = move || {
            let _only = only;
            worker.run();
        };
        let thread = thread::start("batch-worker", run).map_err(WorkerError::Thread)?;
        // What other processes have left.
        shared.notifications.wake();
        Ok(Worker {
            state,
            thread,
            lease_time: shared.repository.lease_time(),
        })
    }

    fn transport_name(&self) -> &str {
        match self.transport.as_deref() {
            Some(name) => name,
            None => match self.runtime.shared().dispatchers.name(None) {
                LOCAL => REPOSITORY,
                name => name,
            },
        }
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("queue", &self.queue)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

/// An error of [`WorkerBuilder::start`] or [`Worker::wait`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It has no slots.
    #[error(
        "cannot start a worker with 0 slots: it would run no partition; set at least 1, or leave the number out for one slot for each \
         processor"
    )]
    NoSlots,
    /// The runtime does not have the transport.
    #[error("unknown transport `{}`; {}", .name.escape_debug(), choices(.name, .known))]
    UnknownTransport {
        /// The name.
        name: String,
        /// The transports of the runtime.
        known: Vec<String>,
    },
    /// The runtime has a worker already. A worker is registered by the name of its runtime.
    #[error("this runtime runs a worker already; build a second `BatchRuntime` for another queue")]
    AlreadyStarted,
    /// The thread of the worker has panicked. The log has the message.
    #[error("the worker has ended unexpectedly: its thread has panicked; see the log")]
    Panicked,
    /// The queue, the clock or the host is wrong.
    #[error("cannot start the worker: {0}")]
    Remote(#[from] RemoteProblem),
    /// The transport cannot be reached, or rejects this program.
    #[error("cannot connect the worker: {}", error_chain(.0))]
    Transport(#[from] DispatchError),
    /// The repository failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The thread cannot be started.
    #[error("cannot start the thread of the worker: {0}")]
    Thread(std::io::Error),
}

impl WorkerError {
    /// Returns whether the same call may succeed later without a change: the repository cannot be used for now.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Repository(error) | Self::Remote(RemoteProblem::Repository(error)) => error.is_temporary(),
            Self::Thread(_) => true,
            _ => false,
        }
    }
}

/// The right of a runtime to its only worker, until it is dropped.
struct OnlyWorker(BatchRuntime);

impl OnlyWorker {
    fn of(runtime: &BatchRuntime) -> Result<Self, WorkerError> {
        match runtime.shared().has_worker.swap(true, Ordering::AcqRel) {
            false => Ok(Self(runtime.clone())),
            true => Err(WorkerError::AlreadyStarted),
        }
    }
}

impl Drop for OnlyWorker {
    fn drop(&mut self) {
        self.0.shared().has_worker.store(false, Ordering::Release);
    }
}

/// Returns the registration of a worker that has not run anything.
fn registration(name: &str, queue: &str, slots: u32) -> WorkerRow {
    WorkerRow {
        name: name.to_owned(),
        queue: queue.to_owned(),
        slots,
        version: env!("CARGO_PKG_VERSION").into(),
        is_draining: false,
        started: 0,
        expires: 0,
        is_alive: true,
        partitions: Vec::new(),
    }
}
