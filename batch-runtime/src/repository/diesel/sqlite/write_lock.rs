//! The write lock of a process: its threads write one after the other, first come, first served.
//!
//! SQLite has one writer. A thread that finds it busy sleeps and tries again, so that one busy partition could starve the
//! others. Writers of other processes are waited for as SQLite does it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam::channel::{Sender, bounded};

/// The write lock of one database.
#[derive(Default)]
pub(in crate::repository::diesel) struct WriteQueue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_locked: bool,
    waiting: VecDeque<Sender<()>>,
    /// How often the lock was passed on.
    passes: u64,
}

/// The right to write, until it is dropped.
pub(in crate::repository::diesel) struct WriteLock {
    queue: Arc<WriteQueue>,
}

impl WriteQueue {
    /// Waits for the lock; with `priority`, ahead of all others. Returns `None` if the lock was not passed on within
    /// `limit`, so that a thread that waits for itself does not wait for ever.
    pub(super) fn take(self: &Arc<Self>, limit: Duration, priority: bool) -> Option<WriteLock> {
        let lock = || WriteLock {
            queue: Arc::clone(self),
        };
        let (sender, receiver, mut passes) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.is_locked {
                state.is_locked = true;
                return Some(lock());
            }
            let (sender, receiver) = bounded(1);
            if priority {
                state.waiting.push_front(sender.clone());
            } else {
                state.waiting.push_back(sender.clone());
            }
            (sender, receiver, state.passes)
        };
        loop {
            if receiver.recv_timeout(limit).is_ok() {
                return Some(lock());
            }
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.passes == passes {
                state.waiting.retain(|other| !other.same_channel(&sender));
                // It may have been passed on at the last moment.
                return receiver.try_recv().is_ok().then(lock);
            }
            passes = state.passes;
        }
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.passes += 1;
        // The lock stays taken when it is passed on: a thread that asks at this moment must not overtake those
        // that wait.
        match state.waiting.pop_front() {
            // The channel has room for the only message that is ever sent.
            Some(next) => drop(next.try_send(())),
            None => state.is_locked = false,
        }
    }
}

#[cfg(test)]
impl WriteLock {
    /// Returns the number of threads that wait for it.
    pub(super) fn waiting(&self) -> usize {
        let state = self.queue.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    impl WriteQueue {
        fn waiting(&self) -> usize {
            self.state.lock().unwrap().waiting.len()
        }
    }

    /// A thread that writes again queues after the waiting threads; one thread writes at a time.
    // Spec: PART-34
    #[test]
    fn the_lock_is_passed_on_in_the_order_of_asking() {
        let queue = Arc::new(WriteQueue::default());
        let first = queue.take(LONG, false).unwrap();
        let (writes, writing) = bounded(0);
        std::thread::scope(|scope| {
            for number in 1..=3 {
                let (queue, writes) = (&queue, writes.clone());
                scope.spawn(move || {
                    let _lock = queue.take(LONG, false).unwrap();
                    // Sent twice: between the two receives, this thread is known to hold the lock.
                    writes.send(number).unwrap();
                    writes.send(number).unwrap();
                });
                while queue.waiting() < number {
                    std::thread::yield_now();
                }
            }
            drop(first);
            for number in 1..=3 {
                assert_eq!(writing.recv(), Ok(number));
                assert!(
                    queue.take(Duration::ZERO, false).is_none(),
                    "one writes at a time"
                );
                assert_eq!(writing.recv(), Ok(number));
            }
        });
        assert!(queue.take(Duration::ZERO, false).is_some(), "the lock is free");
    }

    /// A lease must not expire because many threads wait to write.
    #[test]
    fn priority_goes_ahead_of_all_others() {
        let queue = Arc::new(WriteQueue::default());
        let held = queue.take(LONG, false).unwrap();
        let (writes, writing) = bounded(0);
        std::thread::scope(|scope| {
            for (number, priority) in [(1, false), (2, true)] {
                let (queue, writes) = (&queue, writes.clone());
                scope.spawn(move || {
                    let _lock = queue.take(LONG, priority).unwrap();
                    writes.send(number).unwrap();
                });
                while queue.waiting() < number {
                    std::thread::yield_now();
                }
            }
            drop(held);
            assert_eq!((writing.recv(), writing.recv()), (Ok(2), Ok(1)));
        });
    }

    #[test]
    fn a_thread_that_gives_up_leaves_the_queue() {
        let queue = Arc::new(WriteQueue::default());
        let held = queue.take(LONG, false).unwrap();
        assert!(queue.take(Duration::ZERO, false).is_none());
        assert_eq!(queue.waiting(), 0);
        drop(held);
        assert!(queue.take(Duration::ZERO, false).is_some());
    }
}
