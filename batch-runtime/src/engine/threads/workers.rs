//! The running threads of an execution, which a stop request reaches together.
// Spec: OP-13, PART-28, SPLIT-18

use std::sync::OnceLock;
use std::time::Instant;

use super::worker::{Worker, lock};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// The threads of an execution.
#[derive(Default)]
pub(crate) struct Workers {
    stop: AtomicBool,
    requested: OnceLock<Instant>,
    active: Mutex<Vec<Arc<Worker>>>,
}

impl Workers {
    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns when a stop was first requested.
    pub(crate) fn stop_requested_at(&self) -> Option<Instant> {
        self.requested.get().copied()
    }

    /// Requests every thread to stop, including those that start later.
    pub(crate) fn request_stop(&self) {
        self.requested.get_or_init(Instant::now);
        // Before the list is read: a thread that is added later sees the request.
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.active() {
            worker.request_stop();
        }
    }

    /// Adds a thread.
    pub(crate) fn begin(&self) -> Arc<Worker> {
        let worker = Arc::new(Worker::default());
        // Under the lock, either this sees the request, or the request sees the worker.
        lock(&self.active).push(Arc::clone(&worker));
        if self.stop_requested() {
            worker.request_stop();
        }
        worker
    }

    /// Removes a thread that has ended.
    pub(crate) fn end(&self, worker: &Arc<Worker>) {
        lock(&self.active).retain(|other| !Arc::ptr_eq(other, worker));
    }

    /// Returns the running threads. `#[cancel]` may request a stop, so user code never runs under the lock.
    pub(crate) fn active(&self) -> Vec<Arc<Worker>> {
        lock(&self.active).clone()
    }
}
