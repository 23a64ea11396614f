//! One thread of an execution, as those see it who may stop it: the main thread of the job, or the thread of a subjob.
//!
//! Spec: D-32, D-66, D-87

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::call::call;
use crate::artifact::Batchlet;
use crate::context::ShowsStop;

/// The shared state of one thread.
#[derive(Default)]
pub(crate) struct Worker {
    stop: AtomicBool,
    /// The batchlet that a stop request has to cancel.
    batchlet: Mutex<Option<Arc<dyn Batchlet>>>,
    /// Whether `#[cancel]` has been called.
    cancelled: AtomicBool,
    /// The contexts in which artifacts see that a stop was requested, the outermost first.
    contexts: Mutex<Vec<Box<dyn ShowsStop>>>,
    /// Told of a stop request.
    stopped: Condvar,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing of the user's runs under these locks but `#[cancel]`, whose panics are caught.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// The flag that chunks look at before each item.
    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks the thread to stop, and cancels the batchlet that it is running, from the calling thread. Spec: BLET-06, D-87
    pub(crate) fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        {
            let contexts = lock(&self.contexts);
            contexts.iter().for_each(|context| context.show_stop());
            self.stopped.notify_all();
        }
        // Once is enough, and `#[cancel]` itself may ask for a stop.
        if self.cancelled.load(Ordering::Relaxed) {
            return;
        }
        // The lock is held while `#[cancel]` runs, so that it never runs after `#[process]` has returned.
        let running = lock(&self.batchlet);
        let Some(batchlet) = running
            .as_ref()
            .filter(|_| !self.cancelled.swap(true, Ordering::Relaxed))
        else {
            return;
        };
        if let Err(error) = call(|| batchlet.cancel()) {
            tracing::error!(error = error.chain(), "the batchlet's #[cancel] failed");
        }
    }

    /// From now on `context` shows a stop request as STOPPING. Spec: CTX-16, CTX-26, STATUS-10
    pub(crate) fn enter(&self, context: impl ShowsStop + 'static) {
        // Under the lock: either this sees the request, or the request sees the context.
        let mut contexts = lock(&self.contexts);
        if self.stop_requested() {
            context.show_stop();
        }
        contexts.push(Box::new(context));
    }

    /// The element entered last has ended: its context, and what the user keeps in it, is let go.
    pub(crate) fn leave(&self) {
        lock(&self.contexts).pop();
    }

    /// Says that `#[process]` of `batchlet` is about to be called. `false` when a stop was requested: then it is not.
    pub(crate) fn enter_batchlet(&self, batchlet: &Arc<dyn Batchlet>) -> bool {
        let mut slot = lock(&self.batchlet);
        // Under the lock: either this sees the request, or the request sees the batchlet.
        if self.stop_requested() {
            return false;
        }
        *slot = Some(Arc::clone(batchlet));
        true
    }

    /// Says that `#[process]` has returned. Spec: BLET-08
    pub(crate) fn leave_batchlet(&self) {
        *lock(&self.batchlet) = None;
    }

    /// Waits for `time`, or until a stop is requested.
    pub(crate) fn pause(&self, time: Duration) {
        let contexts = lock(&self.contexts);
        let waited = self
            .stopped
            .wait_timeout_while(contexts, time, |_| !self.stop_requested());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
