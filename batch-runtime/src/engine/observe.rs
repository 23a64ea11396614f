//! Observability of running jobs: spans and events of the log, and metrics with the names of Spring Batch.
//!
//! Metrics go to the recorder that the program has installed; without one they cost next to nothing. Nothing is
//! recorded per item.

use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use tracing::Span;

use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::repository::Lease;
use crate::status::BatchStatus;

/// A running job or step, or a partition of a step.
pub(super) struct Observed {
    /// The metric of the running time.
    time: &'static str,
    labels: Vec<(&'static str, String)>,
    began: Instant,
    active: Gauge,
}

impl Observed {
    pub(super) fn job(job: &str) -> Self {
        let labels = vec![("job", job.to_owned())];
        counter!("spring.batch.job.launch.count", &labels).increment(1);
        let active = gauge!("spring.batch.job.active", &labels);
        tracing::info!("job started");
        Self::begin("spring.batch.job", labels, active)
    }

    /// `step` is the id that all partitions share.
    pub(super) fn step(job: &str, step: &str) -> Self {
        let labels = vec![("job", job.to_owned()), ("step", step.to_owned())];
        let active = gauge!("spring.batch.step.active", &labels);
        tracing::info!("step started");
        Self::begin("spring.batch.step", labels, active)
    }

    fn begin(time: &'static str, labels: Vec<(&'static str, String)>, active: Gauge) -> Self {
        active.increment(1);
        Self {
            time,
            labels,
            began: Instant::now(),
            active,
        }
    }

    fn end(mut self, status: BatchStatus) {
        let mut labels = std::mem::take(&mut self.labels);
        labels.push(("status", status.to_string()));
        histogram!(self.time, &labels).record(self.began.elapsed());
    }

    pub(super) fn end_job(self, ended: &JobExecution) {
        self.end(ended.status);
        let (status, exit_status) = (ended.status.as_str(), ended.exit_status.as_str());
        tracing::info!(status, exit_status, "job ended");
    }

    pub(super) fn end_step(self, status: BatchStatus, exit_status: &str, counters: StepCounters) {
        self.end(status);
        tracing::info!(
            status = status.as_str(),
            exit_status,
            read = counters.reads,
            filtered = counters.filters,
            written = counters.writes,
            commits = counters.commits,
            rollbacks = counters.rollbacks,
            "step ended"
        );
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.active.decrement(1);
    }
}

/// Returns the span for the threads of a job. Enabled at every level, so that warnings show their origin.
pub(super) fn job_span(job: &str, lease: &Lease) -> Span {
    tracing::error_span!(
        "job",
        job,
        instance = lease.instance_id.0,
        execution = lease.execution_id.0
    )
}

/// Returns the span of a step, with the name of its row in the repository.
pub(super) fn step_span(execution: &StepExecution) -> Span {
    tracing::error_span!(
        "step",
        step = execution.step_name,
        step_execution = execution.id.0
    )
}

/// The items of a chunk step, recorded at each commit.
pub(super) struct ObservedItems {
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

impl ObservedItems {
    pub(super) fn of(job: &str, step: &str) -> Self {
        let labels = |status: &'static str| {
            [
                ("job", job.to_owned()),
                ("step", step.to_owned()),
                ("status", status.to_owned()),
            ]
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

    pub(super) fn committed(&self, before: StepCounters, after: StepCounters) {
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
    }

    /// Records the write of a chunk and its result.
    pub(super) fn chunk(&self, time: Duration, success: bool) {
        let chunks = if success {
            &self.chunk_written
        } else {
            &self.chunk_failed
        };
        chunks.record(time);
    }
}
