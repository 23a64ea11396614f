//! Metrics with the names of Spring Batch.
//!
//! They go to the recorder that the program has installed; without one they cost next to nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{JobEvent, JobEventKind, JobObserver, ObservedStep, StepBody};
use crate::execution::StepCounters;
use crate::ids::JobExecutionId;
use crate::status::BatchStatus;

#[derive(Default)]
pub(super) struct MetricsObserver {
    jobs: Mutex<HashMap<JobExecutionId, Gauge>>,
    /// By the address of the step: after a lost lease a step execution can run twice in one process.
    steps: RwLock<HashMap<usize, Arc<StepMetrics>>>,
}

struct StepMetrics {
    active: Gauge,
    /// Of a chunk step.
    items: Option<ItemMetrics>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(step: &Arc<ObservedStep>) -> usize {
    Arc::as_ptr(step).addr()
}

fn record(name: &'static str, mut labels: Vec<(&'static str, String)>, status: BatchStatus, time: Duration) {
    labels.push(("status", status.to_string()));
    histogram!(name, &labels).record(time);
}

fn labels_of_job(event: &JobEvent) -> Vec<(&'static str, String)> {
    vec![("job", event.job.job.clone())]
}

/// The label of a partition is its step.
fn labels_of_step(event: &JobEvent, step: &ObservedStep) -> Vec<(&'static str, String)> {
    vec![("job", event.job.job.clone()), ("step", step.step.clone())]
}

impl JobObserver for MetricsObserver {
    fn on_event(&self, event: &JobEvent) {
        // A partition of a flow is no step; its steps are recorded.
        let step = event.step.as_ref().filter(|step| step.body != StepBody::Flow);
        match (&event.kind, step) {
            (JobEventKind::JobStarted, _) => self.job_started(event),
            (JobEventKind::JobEnded(end), _) => {
                self.job_left(event.job.execution);
                record("spring.batch.job", labels_of_job(event), end.status, end.elapsed);
            }
            (JobEventKind::JobLost { .. }, _) => self.job_left(event.job.execution),
            (JobEventKind::StepStarted { .. }, Some(step)) => self.step_started(event, step),
            (JobEventKind::StepEnded(end), Some(step)) => {
                self.step_left(step);
                record(
                    "spring.batch.step",
                    labels_of_step(event, step),
                    end.status,
                    end.elapsed,
                );
            }
            (JobEventKind::StepLost, Some(step)) => self.step_left(step),
            (
                JobEventKind::ChunkCommitted {
                    before,
                    counters,
                    elapsed,
                },
                Some(step),
            ) => self.with_items(step, |items| items.committed(*before, *counters, *elapsed)),
            (
                JobEventKind::ChunkRolledBack {
                    elapsed: Some(elapsed),
                    ..
                },
                Some(step),
            ) => self.with_items(step, |items| items.chunk_failed.record(*elapsed)),
            _ => {}
        }
    }
}

impl MetricsObserver {
    fn job_started(&self, event: &JobEvent) {
        let labels = labels_of_job(event);
        counter!("spring.batch.job.launch.count", &labels).increment(1);
        let active = gauge!("spring.batch.job.active", &labels);
        active.increment(1);
        lock(&self.jobs).insert(event.job.execution, active);
    }

    fn job_left(&self, execution: JobExecutionId) {
        if let Some(active) = lock(&self.jobs).remove(&execution) {
            active.decrement(1);
        }
    }

    fn step_started(&self, event: &JobEvent, step: &Arc<ObservedStep>) {
        let active = gauge!("spring.batch.step.active", &labels_of_step(event, step));
        active.increment(1);
        let items = (step.body == StepBody::Chunk).then(|| ItemMetrics::of(event, step));
        let metrics = Arc::new(StepMetrics { active, items });
        let mut steps = self.steps.write().unwrap_or_else(PoisonError::into_inner);
        steps.insert(key(step), metrics);
    }

    fn step_left(&self, step: &Arc<ObservedStep>) {
        let mut steps = self.steps.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = steps.remove(&key(step)) {
            left.active.decrement(1);
        }
    }

    /// Commits of different steps do not wait for each other here.
    fn with_items(&self, step: &Arc<ObservedStep>, record: impl FnOnce(&ItemMetrics)) {
        let steps = self.steps.read().unwrap_or_else(PoisonError::into_inner);
        let metrics = steps.get(&key(step)).map(Arc::clone);
        drop(steps);
        if let Some(items) = metrics.as_ref().and_then(|metrics| metrics.items.as_ref()) {
            record(items);
        }
    }
}

/// The metrics of items and chunks, which are looked up once for a step.
struct ItemMetrics {
    read: Counter,
    read_skipped: Counter,
    processed: Counter,
    filtered: Counter,
    process_skipped: Counter,
    written: Counter,
    write_skipped: Counter,
    chunk_written: Histogram,
    chunk_failed: Histogram,
}

impl ItemMetrics {
    fn of(event: &JobEvent, step: &ObservedStep) -> Self {
        let labels = |status: &str| {
            let mut labels = labels_of_step(event, step);
            labels.push(("status", status.to_owned()));
            labels
        };
        let items = |name: &'static str, status| counter!(name, &labels(status));
        Self {
            read: items("spring.batch.item.read", "SUCCESS"),
            read_skipped: items("spring.batch.item.read", "SKIPPED"),
            processed: items("spring.batch.item.process", "SUCCESS"),
            filtered: items("spring.batch.item.process", "FILTERED"),
            process_skipped: items("spring.batch.item.process", "SKIPPED"),
            written: items("spring.batch.item.write", "SUCCESS"),
            write_skipped: items("spring.batch.item.write", "SKIPPED"),
            chunk_written: histogram!("spring.batch.chunk.write", &labels("SUCCESS")),
            chunk_failed: histogram!("spring.batch.chunk.write", &labels("FAILURE")),
        }
    }

    fn committed(&self, before: StepCounters, after: StepCounters, elapsed: Duration) {
        let more =
            |of: fn(&StepCounters) -> i64| u64::try_from(of(&after).saturating_sub(of(&before))).unwrap_or(0);
        self.read.increment(more(|counters| counters.reads));
        self.read_skipped.increment(more(|counters| counters.read_skips));
        self.processed
            .increment(more(|counters| counters.writes + counters.write_skips));
        self.filtered.increment(more(|counters| counters.filters));
        self.process_skipped
            .increment(more(|counters| counters.process_skips));
        self.written.increment(more(|counters| counters.writes));
        self.write_skipped
            .increment(more(|counters| counters.write_skips));
        self.chunk_written.record(elapsed);
    }
}
