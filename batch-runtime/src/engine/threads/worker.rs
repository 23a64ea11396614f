//! One thread of an execution, as those see it who may stop it: the main thread of the job, or the thread of a subjob.
//!
//! Spec: D-32, D-66, D-87

use std::sync::OnceLock;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering, PoisonError};
use crate::context::ShowsStop;
use crate::engine::call::call;
use crate::role::Batchlet;

/// The shared state of one thread.
#[derive(Default)]
pub(crate) struct Worker {
    /// What chunks look at: a stop request, or a step that takes too long.
    stop: AtomicBool,
    /// A stop request.
    asked: AtomicBool,
    /// When the running step has to have ended, and what is said when it has not.
    deadline: Mutex<Option<Deadline>>,
    /// That it has not.
    overdue: Mutex<Option<String>>,
    /// The batchlet that a stop request has to cancel.
    batchlet: Mutex<Option<Arc<dyn Batchlet>>>,
    /// Whether `#[cancel]` has been called.
    cancelled: AtomicBool,
    /// The contexts in which artifacts see that a stop was requested, the outermost first.
    contexts: Mutex<Vec<Box<dyn ShowsStop>>>,
    /// The threads of the subjobs that this one waits for: what stops it stops them.
    children: Mutex<Vec<Arc<Worker>>>,
    thread: OnceLock<ThreadId>,
    /// Told of a stop request.
    stopped: Condvar,
}

struct Deadline {
    at: Instant,
    message: String,
}

pub(in crate::engine) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing of the user's runs under these locks but `#[cancel]`, whose panics are caught.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// Called by the thread first of all.
    pub(crate) fn runs_here(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// Whether the caller is on this thread, which must not wait for itself.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// The flag that chunks look at before each item.
    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks the thread to stop, and cancels the batchlet that it is running, from the calling thread. Spec: BLET-06, D-87
    pub(crate) fn request_stop(&self) {
        {
            let contexts = lock(&self.contexts);
            self.asked.store(true, Ordering::Relaxed);
            self.stop.store(true, Ordering::Relaxed);
            contexts.iter().for_each(|context| context.show_stop());
            self.stopped.notify_all();
        }
        self.cancel();
    }

    /// The step that begins now has to have ended after `limit`; else it is stopped, and fails with `message`.
    pub(crate) fn set_deadline(&self, limit: Duration, message: String) {
        *lock(&self.deadline) = Instant::now()
            .checked_add(limit)
            .map(|at| Deadline { at, message });
    }

    /// Whether the running step should have ended.
    pub(crate) fn is_overdue(&self) -> bool {
        let deadline = lock(&self.deadline);
        deadline
            .as_ref()
            .is_some_and(|deadline| deadline.at <= Instant::now())
    }

    /// Stops the running step if its time is over.
    pub(crate) fn enforce_deadline(&self) {
        // Held until all is done, so that the next step does not begin meanwhile.
        let mut deadline = lock(&self.deadline);
        let Some(over) = deadline.take_if(|deadline| deadline.at <= Instant::now()) else {
            return;
        };
        *lock(&self.overdue) = Some(over.message);
        {
            let _contexts = lock(&self.contexts);
            self.stop.store(true, Ordering::Relaxed);
            self.stopped.notify_all();
        }
        self.cancel();
    }

    /// The step has ended. Returns what is to be said if its time was over; another step may begin then, unless a stop
    /// was requested as well.
    pub(crate) fn clear_deadline(&self) -> Option<String> {
        let mut deadline = lock(&self.deadline);
        *deadline = None;
        let overdue = lock(&self.overdue).take()?;
        // Under the lock: a stop request that comes now is seen.
        let _contexts = lock(&self.contexts);
        self.stop
            .store(self.asked.load(Ordering::Relaxed), Ordering::Relaxed);
        self.cancelled.store(false, Ordering::Relaxed);
        Some(overdue)
    }

    /// A subjob that this thread waits for.
    pub(crate) fn adopt(&self, child: &Arc<Worker>) {
        // Under the lock: either this sees the request, or the request sees the child.
        lock(&self.children).push(Arc::clone(child));
        if self.stop_requested() {
            child.request_stop();
        }
    }

    /// The subjob has ended.
    pub(crate) fn release(&self, child: &Arc<Worker>) {
        lock(&self.children).retain(|other| !Arc::ptr_eq(other, child));
    }

    /// Asks the subjobs to stop, and only them. Spec: D-32
    pub(crate) fn stop_children(&self) {
        let children = lock(&self.children).clone();
        children.iter().for_each(|child| child.request_stop());
    }

    fn cancel(&self) {
        self.stop_children();
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
