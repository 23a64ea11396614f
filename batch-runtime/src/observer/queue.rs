//! The queue and the thread of an observer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, bounded};

use super::{JobEvent, JobEventKind, JobObserver};
use crate::thread;

/// The number of events that wait for an observer.
const CAPACITY: usize = 4_096;

/// The queue of an observer.
pub(super) struct Queue {
    events: Sender<Arc<JobEvent>>,
    state: Arc<State>,
    thread: ThreadId,
}

#[derive(Default)]
struct State {
    dropped: AtomicU64,
    sent: AtomicU64,
    received: Mutex<u64>,
    has_received: Condvar,
}

impl Queue {
    /// Starts the thread of an observer.
    pub(super) fn start(observer: Arc<dyn JobObserver>) -> std::io::Result<Self> {
        let (events, queued) = bounded(CAPACITY);
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = thread::start("batch-observer", move || deliver(&*observer, &queued, &shared))?;
        Ok(Self {
            events,
            state,
            thread: thread.thread().id(),
        })
    }

    /// Queues an event, unless the queue is full.
    pub(super) fn send(&self, event: Arc<JobEvent>) {
        let count = match self.events.try_send(event) {
            Ok(()) => &self.state.sent,
            Err(_) => &self.state.dropped,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until the observer has received all events, but not longer than `until`. Returns whether it has.
    pub(super) fn drain(&self, until: Instant) -> bool {
        if self.thread == std::thread::current().id() {
            // It receives the rest once this event is handled.
            return true;
        }
        let sent = self.state.sent.load(Ordering::Relaxed);
        let received = self.state.received.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let waited = self
            .state
            .has_received
            .wait_timeout_while(received, left, |received| *received < sent);
        *waited.unwrap_or_else(PoisonError::into_inner).0 >= sent
    }
}

/// The body of an observer's thread.
fn deliver(observer: &dyn JobObserver, queued: &Receiver<Arc<JobEvent>>, state: &State) {
    let mut slow = Slow::default();
    for event in queued {
        call(observer, &event);
        let dropped = state.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            slow.dropped(dropped);
            call(
                observer,
                &JobEvent {
                    kind: JobEventKind::EventsDropped { count: dropped },
                    ..JobEvent::clone(&event)
                },
            );
        }
        *state.received.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        state.has_received.notify_all();
    }
}

fn call(observer: &dyn JobObserver, event: &JobEvent) {
    if catch_unwind(AssertUnwindSafe(|| observer.on_event(event))).is_err() {
        tracing::error!(execution = %event.job.execution, "an observer panicked; it gets the next event");
    }
}

/// Logs that an observer is slow, not more often than every ten seconds.
#[derive(Default)]
struct Slow {
    logged: Option<Instant>,
    dropped: u64,
}

impl Slow {
    fn dropped(&mut self, count: u64) {
        const PAUSE: Duration = Duration::from_secs(10);
        self.dropped += count;
        if self.logged.is_none_or(|logged| logged.elapsed() >= PAUSE) {
            self.logged = Some(Instant::now());
            let dropped = std::mem::take(&mut self.dropped);
            tracing::warn!(dropped, "an observer is too slow: events were dropped for it");
        }
    }
}
