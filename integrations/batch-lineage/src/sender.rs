//! The queue of events, and the thread that sends them. No job waits for either.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::transport::{SendError, Transport};

/// The number of events that wait to be sent.
const CAPACITY: usize = 1_024;

/// The pauses before an event is sent again.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// Sends events in their order.
pub(crate) struct Sender {
    shared: Arc<Shared>,
}

struct Shared {
    transport: Transport,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    is_sending: bool,
    /// True once the thread runs.
    is_started: bool,
    is_closed: bool,
    /// True once an event could not be sent, until one can.
    is_down: bool,
    /// The number of events that were lost since it was last logged.
    lost: u64,
}

impl Sender {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            shared: Arc::new(Shared {
                transport,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Queues an event. Without a place in the queue it is lost.
    pub(crate) fn send(&self, event: String) {
        let mut state = self.shared.state();
        if state.is_closed {
            return;
        }
        if state.waiting.len() >= CAPACITY {
            state.lost += 1;
            return;
        }
        state.waiting.push_back(event);
        if !state.is_started {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("batch-lineage".into());
            match thread.spawn(move || shared.run()) {
                Ok(_) => state.is_started = true,
                Err(error) => tracing::warn!("cannot start the thread that sends lineage events: {error}"),
            }
        }
        self.shared.changed.notify_all();
    }

    /// Sends what is queued, for at most `limit`, and ends. What is not sent by then is lost, with a warning.
    pub(crate) fn close(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut state = self.shared.state();
        if std::mem::replace(&mut state.is_closed, true) {
            return;
        }
        self.shared.changed.notify_all();
        while state.is_sending || !state.waiting.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !state.is_started {
                break;
            }
            state = self.shared.wait(state, left);
        }
        let lost = state.lost + state.waiting.len() as u64 + u64::from(state.is_sending);
        if lost > 0 {
            tracing::warn!("{lost} lineage events could not be sent, and are lost");
        }
        state.waiting.clear();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // The thread sends the rest, if the process lives.
        self.shared.state().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// No foreign code runs under the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_timeout(state, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The body of the thread.
    fn run(&self) {
        while let Some((event, was_down)) = self.next() {
            let sent = self.deliver(&event, was_down);
            let mut state = self.state();
            state.is_sending = false;
            match sent {
                Ok(()) if state.is_down => {
                    let lost = std::mem::take(&mut state.lost);
                    tracing::info!(
                        "lineage events can be sent to {} again; {lost} are lost",
                        self.transport
                    );
                    state.is_down = false;
                }
                Ok(()) => {}
                Err(error) => self.failed(&mut state, &error),
            }
            self.changed.notify_all();
        }
    }

    /// Waits for the next event; `None` at the end. Returns whether the event before could not be sent.
    fn next(&self) -> Option<(String, bool)> {
        let mut state = self.state();
        loop {
            if let Some(event) = state.waiting.pop_front() {
                state.is_sending = true;
                return Some((event, state.is_down));
            }
            if state.is_closed {
                return None;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sends an event, and tries again, unless the server was down before.
    fn deliver(&self, event: &str, was_down: bool) -> Result<(), SendError> {
        let mut sent = self.transport.send(event);
        let pauses = if was_down { &[] } else { &PAUSES[..] };
        for pause in pauses {
            match &sent {
                Err(error) if error.is_transient => thread::sleep(*pause),
                _ => break,
            }
            sent = self.transport.send(event);
        }
        sent
    }

    fn failed(&self, state: &mut State, error: &SendError) {
        state.lost += 1;
        if !std::mem::replace(&mut state.is_down, true) {
            let (transport, cause, variable) = (&self.transport, &error.cause, self.transport.variable());
            tracing::warn!(
                "cannot send lineage events to {transport}: {cause}; jobs run on, and events are lost until that is possible; check {variable}"
            );
        }
        if state.is_closed {
            // The end of the process would wait for each of them.
            state.lost += state.waiting.len() as u64;
            state.waiting.clear();
        }
    }
}
