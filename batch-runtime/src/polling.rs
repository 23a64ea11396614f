//! Waiting for a message that comes soon: waking a thread can take longer than the work that it would sleep through.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, TryRecvError};

/// The longest time that a thread polls before it sleeps.
const LONG: Duration = Duration::from_micros(500);
/// The same after a message that came much later.
const SHORT: Duration = Duration::from_micros(50);

/// A receiver of messages that polls before it sleeps. The time is shorter if the last message came late.
pub(crate) struct Waiter {
    limit: Duration,
}

impl Waiter {
    pub(crate) fn new() -> Self {
        Self { limit: LONG }
    }

    /// Waits for a message; `None` if no message can come any more.
    pub(crate) fn receive<T>(&mut self, messages: &Receiver<T>) -> Option<T> {
        let begin = Instant::now();
        while begin.elapsed() < self.limit {
            match messages.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => thread::yield_now(),
            }
        }
        let message = messages.recv().ok();
        self.limit = if begin.elapsed() < 2 * LONG { LONG } else { SHORT };
        message
    }
}
