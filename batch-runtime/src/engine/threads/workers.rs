//! The threads of an execution that run now, and the stop request that reaches all of them.
//!
//! Spec: OP-13, PART-28, SPLIT-18

use super::sync::{Arc, AtomicBool, Mutex, Ordering};
use super::worker::{Worker, lock};

/// The threads of an execution.
#[derive(Default)]
pub(crate) struct Workers {
    stop: AtomicBool,
    active: Mutex<Vec<Arc<Worker>>>,
}

impl Workers {
    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks every thread to stop, those that begin later too.
    pub(crate) fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.active() {
            worker.request_stop();
        }
    }

    /// A thread more.
    pub(crate) fn begin(&self) -> Arc<Worker> {
        let worker = Arc::new(Worker::default());
        // Under the lock: either this sees the request, or the request sees the worker.
        lock(&self.active).push(Arc::clone(&worker));
        if self.stop_requested() {
            worker.request_stop();
        }
        worker
    }

    /// The thread has ended.
    pub(crate) fn end(&self, worker: &Arc<Worker>) {
        lock(&self.active).retain(|other| !Arc::ptr_eq(other, worker));
    }

    /// Those that run now. `#[cancel]` may ask for a stop again, so nothing of the user's is called under the lock.
    pub(crate) fn active(&self) -> Vec<Arc<Worker>> {
        lock(&self.active).clone()
    }
}
