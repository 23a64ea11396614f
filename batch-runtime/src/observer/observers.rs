//! The observers of a runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::log::LogObserver;
use super::metrics::MetricsObserver;
use super::queue::Queue;
use super::{JobEvent, JobEventKind, JobObserver, ObservedJob, ObservedStep};
use crate::clock::{Clock, Timestamp};

/// The time that the end of a runtime waits for observers.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// The observers of a runtime: its own, which are called at once, and the program's, which have queues.
pub(crate) struct Observers {
    clock: Arc<dyn Clock>,
    metrics: MetricsObserver,
    of_program: Vec<Arc<dyn JobObserver>>,
    queues: Vec<Queue>,
}

impl Observers {
    /// Starts the threads of the observers.
    pub(crate) fn start(
        clock: Arc<dyn Clock>,
        observers: impl IntoIterator<Item = Arc<dyn JobObserver>>,
    ) -> std::io::Result<Self> {
        let of_program: Vec<_> = observers.into_iter().collect();
        let queues = of_program.iter().map(Arc::clone).map(Queue::start);
        Ok(Self {
            clock,
            metrics: MetricsObserver::default(),
            queues: queues.collect::<Result<_, _>>()?,
            of_program,
        })
    }

    /// Returns the context of a new trace for an execution of `job`, if an observer traces it.
    pub(crate) fn trace_job(&self, job: &str) -> Option<String> {
        let trace = |observer: &Arc<dyn JobObserver>| {
            catch_unwind(AssertUnwindSafe(|| observer.trace_job(job))).unwrap_or_else(|_| {
                tracing::error!(job, "an observer panicked; the execution is not traced");
                None
            })
        };
        self.of_program.iter().find_map(trace)
    }

    /// Returns whether the program has observers, so that the texts of errors are needed.
    pub(crate) fn are_any(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Passes an event to all observers, and to `progress`.
    pub(super) fn emit(
        &self,
        job: &Arc<ObservedJob>,
        step: Option<&Arc<ObservedStep>>,
        kind: JobEventKind,
        progress: &dyn JobObserver,
    ) {
        let event = JobEvent {
            // The runtime's own observers do not read it.
            at: match self.are_any() {
                true => self.clock.now(),
                false => Timestamp(0),
            },
            job: Arc::clone(job),
            step: step.map(Arc::clone),
            kind,
        };
        progress.on_event(&event);
        self.metrics.on_event(&event);
        LogObserver.on_event(&event);
        if self.are_any() {
            let event = Arc::new(event);
            self.queues
                .iter()
                .for_each(|queue| queue.send(Arc::clone(&event)));
        }
    }

    /// Waits for the observers to receive all events, but not long.
    pub(crate) fn drain(&self) {
        let until = Instant::now() + LAST_EVENTS;
        for queue in &self.queues {
            if !queue.drain(until) {
                tracing::warn!("an observer has not received all events before the end of its runtime");
            }
        }
    }
}
