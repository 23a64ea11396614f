//! Metrics with the names of Spring Batch.
//!
//! They go to the recorder that the program has installed; without one they cost next to nothing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{JobEvent, JobEventKind, JobObserver, ObservedStep};
use crate::execution::StepCounters;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::status::BatchStatus;

#[derive(Default)]
pub(super) struct MetricsObserver {
    jobs: Mutex<HashMap<JobExecutionId, Gauge>>,
    steps: Mutex<HashMap<StepExecutionId, StepMetrics>>,
}

struct StepMetrics {
    active: Gauge,
    /// From the first chunk on.
    items: Option<ItemMetrics>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        match (&event.kind, event.step.as_deref()) {
            (JobEventKind::JobStarted, _) => self.job_started(event),
            (JobEventKind::JobEnded(end), _) => {
                self.job_left(event.job.execution);
                record("spring.batch.job", labels_of_job(event), end.status, end.elapsed);
            }
            (JobEventKind::JobLost { .. }, _) => self.job_left(event.job.execution),
            (JobEventKind::StepStarted { .. }, Some(step)) => self.step_started(event, step),
            (JobEventKind::StepEnded(end), Some(step)) => {
                self.step_left(step.execution);
                record(
                    "spring.batch.step",
                    labels_of_step(event, step),
                    end.status,
                    end.elapsed,
                );
            }
            (JobEventKind::StepLost, Some(step)) => self.step_left(step.execution),
            (
                JobEventKind::ChunkCommitted {
                    before,
                    counters,
                    elapsed,
                },
                Some(step),
            ) => self.with_items(event, step, |items| items.committed(*before, *counters, *elapsed)),
            (
                JobEventKind::ChunkRolledBack {
                    elapsed: Some(elapsed),
                    ..
                },
                Some(step),
            ) => self.with_items(event, step, |items| items.chunk_failed.record(*elapsed)),
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

    fn step_started(&self, event: &JobEvent, step: &ObservedStep) {
        let active = gauge!("spring.batch.step.active", &labels_of_step(event, step));
        active.increment(1);
        let metrics = StepMetrics { active, items: None };
        lock(&self.steps).insert(step.execution, metrics);
    }

    fn step_left(&self, execution: StepExecutionId) {
        if let Some(step) = lock(&self.steps).remove(&execution) {
            step.active.decrement(1);
        }
    }

    fn with_items(&self, event: &JobEvent, step: &ObservedStep, record: impl FnOnce(&ItemMetrics)) {
        if let Some(metrics) = lock(&self.steps).get_mut(&step.execution) {
            record(metrics.items.get_or_insert_with(|| ItemMetrics::of(event, step)));
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
