//! The gate between the threads of a pipelined chunk step and its contexts: it is closed while a chunk is written and committed, so
//! that the data of the chunk that is read meanwhile is not committed with it.
//!
//! Spec: D-100

use std::cell::RefCell;
use std::thread::{self, ThreadId};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

thread_local! {
    static GATE: RefCell<Option<Arc<ContextGate>>> = const { RefCell::new(None) };
}

/// Waits until the calling thread may use a context. Only threads that read or process the items of a pipelined chunk ever wait.
pub(crate) fn wait() {
    GATE.with_borrow(|gate| {
        if let Some(gate) = gate {
            gate.wait();
        }
    });
}

/// Returns the thread of the step for which the calling thread reads or processes; of another thread, its own.
pub(crate) fn step_thread() -> ThreadId {
    GATE.with_borrow(|gate| {
        gate.as_ref()
            .map_or_else(|| thread::current().id(), |gate| gate.step_thread)
    })
}

/// The gate of one step.
pub(crate) struct ContextGate {
    step_thread: ThreadId,
    closed: Mutex<bool>,
    opened: Condvar,
}

impl ContextGate {
    /// Creates an open gate for a step on the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            step_thread: thread::current().id(),
            closed: Mutex::default(),
            opened: Condvar::default(),
        }
    }

    fn closed(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Places the gate between the calling thread and all contexts.
    pub(crate) fn guard_this_thread(self: &Arc<Self>) {
        GATE.set(Some(Arc::clone(self)));
    }

    /// Makes the guarded threads wait, from their next use of a context.
    pub(crate) fn close(&self) {
        *self.closed() = true;
    }

    /// Lets the guarded threads continue.
    pub(crate) fn open(&self) {
        *self.closed() = false;
        self.opened.notify_all();
    }

    pub(crate) fn wait(&self) {
        let closed = self.closed();
        let opened = self.opened.wait_while(closed, |closed| *closed);
        drop(opened.unwrap_or_else(PoisonError::into_inner));
    }
}
