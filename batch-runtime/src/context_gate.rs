//! Keeps the data of the next chunk out of the commit of this one: threads that read ahead wait here before they use a context.
// Spec: D-100

use std::cell::RefCell;
use std::thread::{self, ThreadId};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

thread_local! {
    static GATE: RefCell<Option<Arc<ContextGate>>> = const { RefCell::new(None) };
}

/// Waits until the calling thread may use a context. Returns `false` if it must not change one, because the items that it reads or
/// processes are discarded. Only threads that read or process the items of a pipelined chunk ever wait.
pub(crate) fn wait() -> bool {
    GATE.with_borrow(|gate| gate.as_ref().is_none_or(|gate| gate.wait()))
}

/// Returns the id of the step's thread if the caller reads or processes for a step, else the caller's own.
pub(crate) fn step_thread() -> ThreadId {
    GATE.with_borrow(|gate| {
        gate.as_ref()
            .map_or_else(|| thread::current().id(), |gate| gate.step_thread)
    })
}

/// The gate of one step.
pub(crate) struct ContextGate {
    step_thread: ThreadId,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Closed,
    /// What the guarded threads do has no effect on contexts.
    Discarded,
}

impl ContextGate {
    /// Creates an open gate for a step on the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            step_thread: thread::current().id(),
            state: Mutex::default(),
            changed: Condvar::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Places the gate between the calling thread and all contexts.
    pub(crate) fn guard_this_thread(self: &Arc<Self>) {
        GATE.set(Some(Arc::clone(self)));
    }

    /// Makes the guarded threads wait, from their next use of a context.
    pub(crate) fn close(&self) {
        *self.state() = State::Closed;
    }

    /// Lets the guarded threads continue.
    pub(crate) fn open(&self) {
        *self.state() = State::Open;
        self.changed.notify_all();
    }

    /// Lets the guarded threads continue, without an effect on contexts.
    pub(crate) fn discard(&self) {
        *self.state() = State::Discarded;
        self.changed.notify_all();
    }

    pub(crate) fn wait(&self) -> bool {
        let state = self.state();
        let opened = self.changed.wait_while(state, |state| *state == State::Closed);
        *opened.unwrap_or_else(PoisonError::into_inner) == State::Open
    }
}
