//! A thread of an execution that can be stopped: the main thread of the job, or the thread of a subjob.
// Spec: D-32, D-66, D-87

use std::sync::OnceLock;
use std::thread::ThreadId;
use std::time::Duration;

use crate::context::ShowsStop;
use crate::context_gate;
use crate::engine::call::call;
use crate::role::Batchlet;
use crate::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering, PoisonError};

/// The shared state of one thread.
#[derive(Default)]
pub(crate) struct Worker {
    /// The flag that chunks check: a stop request, or an exceeded limit.
    stop: AtomicBool,
    /// A stop request.
    asked: AtomicBool,
    /// The limits of the running step.
    limits: Mutex<Vec<Limit>>,
    /// The message of an exceeded limit.
    overdue: Mutex<Option<String>>,
    /// The batchlet that a stop request has to cancel.
    batchlet: Mutex<Option<Arc<dyn Batchlet>>>,
    /// True once `#[cancel]` has been called.
    cancelled: AtomicBool,
    /// The contexts that expose a stop request to artifacts, outermost first.
    contexts: Mutex<Vec<Box<dyn ShowsStop>>>,
    /// The threads of the subjobs that this one waits for, which are stopped with it.
    children: Mutex<Vec<Arc<Worker>>>,
    thread: OnceLock<ThreadId>,
    /// Notified of a stop request.
    stopped: Condvar,
}

/// Returns a message if a limit is exceeded.
type Limit = Box<dyn FnMut() -> Option<Exceeded> + Send>;

/// A limit that a step exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// The message of the step's failure.
    pub(crate) message: String,
    /// The step, if it is the heartbeat.
    pub(crate) silent_step: Option<String>,
}

impl Exceeded {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            silent_step: None,
        }
    }
}

pub(in crate::engine) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The only user code under these locks is `#[cancel]`, whose panics are caught.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// Registers the calling thread as this one.
    pub(crate) fn runs_here(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// Returns whether the caller is this thread or works for it, and must not wait for its end.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&context_gate::step_thread())
    }

    /// Returns the flag that chunks check before each item.
    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Requests the thread to stop, and cancels its running batchlet, on the calling thread.
    // Spec: BLET-06, D-87
    pub(crate) fn request_stop(&self) {
        {
            // `pause` checks the flag under this lock, so no wait misses the request.
            let contexts = lock(&self.contexts);
            self.asked.store(true, Ordering::Relaxed);
            self.stop.store(true, Ordering::Relaxed);
            contexts.iter().for_each(|context| context.show_stop());
            self.stopped.notify_all();
        }
        self.cancel();
    }

    /// Adds a limit of the starting step: once it is exceeded, the step is stopped and fails with its message.
    pub(crate) fn add_limit(&self, limit: impl FnMut() -> Option<Exceeded> + Send + 'static) {
        lock(&self.limits).push(Box::new(limit));
    }

    /// Returns whether the running step exceeds a limit.
    pub(crate) fn is_overdue(&self) -> bool {
        // Held while `#[cancel]` runs, which may block; the keeper has to renew leases meanwhile.
        let Ok(mut limits) = self.limits.try_lock() else {
            return false;
        };
        limits.iter_mut().any(|limit| limit().is_some())
    }

    /// Stops the running step if it exceeds a limit. Calls `report` before `#[cancel]`, which may block.
    pub(crate) fn enforce_limits(&self, report: impl FnOnce(&Exceeded)) {
        // Held until the end, so that the next step does not start meanwhile.
        let mut limits = lock(&self.limits);
        let Some(exceeded) = limits.iter_mut().find_map(|limit| limit()) else {
            return;
        };
        limits.clear();
        report(&exceeded);
        *lock(&self.overdue) = Some(exceeded.message);
        {
            let contexts = lock(&self.contexts);
            self.stop.store(true, Ordering::Relaxed);
            // A reader that waits sees it in the step's context; the job may continue.
            if let Some(step) = contexts.last() {
                step.show_stop();
            }
            self.stopped.notify_all();
        }
        self.cancel();
    }

    /// Ends the limits of the step. Returns the message of an exceeded one; another step may start then, unless a stop was
    /// requested as well.
    pub(crate) fn clear_limits(&self) -> Option<String> {
        let mut limits = lock(&self.limits);
        limits.clear();
        let overdue = lock(&self.overdue).take()?;
        // Under the lock, a concurrent stop request is seen.
        let _contexts = lock(&self.contexts);
        self.stop
            .store(self.asked.load(Ordering::Relaxed), Ordering::Relaxed);
        // Otherwise a stop could not cancel the batchlet of the next step.
        self.cancelled.store(false, Ordering::Relaxed);
        Some(overdue)
    }

    /// Adds a subjob that this thread waits for.
    pub(crate) fn adopt(&self, child: &Arc<Worker>) {
        // Under the lock, either this sees the request, or the request sees the child.
        lock(&self.children).push(Arc::clone(child));
        if self.stop_requested() {
            child.request_stop();
        }
    }

    /// Removes a subjob that has ended.
    pub(crate) fn release(&self, child: &Arc<Worker>) {
        lock(&self.children).retain(|other| !Arc::ptr_eq(other, child));
    }

    /// Requests only the subjobs to stop.
    // Spec: D-32
    pub(crate) fn stop_children(&self) {
        // Released before `#[cancel]` of a child runs, which may request a stop itself.
        let children = lock(&self.children).clone();
        children.iter().for_each(|child| child.request_stop());
    }

    fn cancel(&self) {
        self.stop_children();
        // `#[cancel]` may request a stop itself, so it is called only once.
        if self.cancelled.load(Ordering::Relaxed) {
            return;
        }
        // Holding the lock ensures that `#[cancel]` never runs after `#[process]` has returned.
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

    /// Makes `context` expose stop requests as STOPPING.
    // Spec: CTX-16, CTX-26, STATUS-10
    pub(crate) fn enter(&self, context: impl ShowsStop + 'static) {
        // Under the lock, either this sees the request, or the request sees the context.
        let mut contexts = lock(&self.contexts);
        if self.stop_requested() {
            context.show_stop();
        }
        contexts.push(Box::new(context));
    }

    /// Drops the context of the element that has ended, with its user data.
    pub(crate) fn leave(&self) {
        lock(&self.contexts).pop();
    }

    /// Drops all contexts, at the end of a subjob.
    pub(crate) fn leave_all(&self) {
        lock(&self.contexts).clear();
    }

    /// Announces the call of `#[process]` of `batchlet`. Returns `false` after a stop request: it must not be called then.
    pub(crate) fn enter_batchlet(&self, batchlet: &Arc<dyn Batchlet>) -> bool {
        let mut slot = lock(&self.batchlet);
        // Under the lock, either this sees the request, or the request sees the batchlet.
        if self.stop_requested() {
            return false;
        }
        *slot = Some(Arc::clone(batchlet));
        true
    }

    /// Records that `#[process]` has returned.
    // Spec: BLET-08
    pub(crate) fn leave_batchlet(&self) {
        *lock(&self.batchlet) = None;
    }

    /// Waits for `time`, or until a stop request.
    pub(crate) fn pause(&self, time: Duration) {
        let contexts = lock(&self.contexts);
        let waited = self
            .stopped
            .wait_timeout_while(contexts, time, |_| !self.stop_requested());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
