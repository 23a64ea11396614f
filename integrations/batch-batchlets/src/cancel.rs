//! The request to end a batchlet, and how the work waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request to end, which `#[cancel]` makes on another thread than the work.
#[derive(Default)]
pub(crate) struct Cancel {
    state: Mutex<State>,
    requested: Condvar,
}

#[derive(Default)]
struct State {
    requested: bool,
    interrupt: Option<Interrupt>,
}

/// Interrupts a call that does not check for a request.
type Interrupt = Box<dyn FnOnce() + Send>;

impl Cancel {
    /// Requests the work to end, and interrupts the call that it is in.
    pub(crate) fn request(&self) {
        let mut state = self.state();
        state.requested = true;
        self.requested.notify_all();
        let interrupt = state.interrupt.take();
        // An interrupt may block, and the work checks the state meanwhile.
        drop(state);
        if let Some(interrupt) = interrupt {
            interrupt();
        }
    }

    /// Returns whether the work should end.
    pub(crate) fn is_requested(&self) -> bool {
        self.state().requested
    }

    /// Waits for `time`. Returns true, at once, if the work should end.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let waited = self
            .requested
            .wait_timeout_while(self.state(), time, |state| !state.requested);
        waited.unwrap_or_else(PoisonError::into_inner).0.requested
    }

    /// Calls `work`; a request meanwhile, or an earlier one, calls `interrupt`.
    pub(crate) fn interruptible<T>(
        &self,
        interrupt: impl FnOnce() + Send + 'static,
        work: impl FnOnce() -> T,
    ) -> T {
        let mut state = self.state();
        if state.requested {
            drop(state);
            interrupt();
            return work();
        }
        state.interrupt = Some(Box::new(interrupt));
        drop(state);
        let result = work();
        self.state().interrupt = None;
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No other code runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_request_ends_a_pause() {
        let cancel = Cancel::default();
        assert!(!cancel.pause(Duration::ZERO));
        thread::scope(|scope| {
            let paused = scope.spawn(|| cancel.pause(Duration::MAX));
            cancel.request();
            assert!(paused.join().unwrap());
        });
        assert!(cancel.pause(Duration::from_secs(3600)), "an earlier request");
    }

    #[test]
    fn a_request_interrupts_the_work_once() {
        let cancel = Cancel::default();
        let (sender, receiver) = channel();
        let interrupt = sender.clone();
        cancel.interruptible(
            move || interrupt.send("during").unwrap(),
            || {
                cancel.request();
                cancel.request();
            },
        );
        cancel.interruptible(move || sender.send("before").unwrap(), || ());
        assert_eq!(receiver.iter().collect::<Vec<_>>(), ["during", "before"]);
    }

    #[test]
    fn work_that_has_ended_is_not_interrupted() {
        let cancel = Cancel::default();
        let (sender, receiver) = channel();
        cancel.interruptible(move || sender.send(()).unwrap(), || ());
        cancel.request();
        assert!(receiver.recv().is_err());
    }
}
