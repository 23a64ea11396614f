//! Observability of running jobs: spans and events of the log, and metrics with the names of Spring Batch.
//!
//! Metrics go to the recorder that the program has installed; without one they cost next to nothing. Nothing is
//! recorded per item.

use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use tracing::Span;

use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::status::BatchStatus;

/// A running job.
pub(super) struct ObservedJob {
    job: String,
    began: Instant,
    active: Gauge,
}

impl ObservedJob {
    pub(super) fn begin(job: &str) -> Self {
        counter!("spring.batch.job.launch.count", "job" => job.to_owned()).increment(1);
        let active = gauge!("spring.batch.job.active", "job" => job.to_owned());
        active.increment(1);
        tracing::info!("job started");
        Self {
            job: job.to_owned(),
            began: Instant::now(),
            active,
        }
    }

    /// Returns the span for the threads of the job. Enabled at every level, so that warnings show their origin.
    pub(super) fn span(execution: &JobExecution) -> Span {
        tracing::error_span!(
            "job",
            job = execution.job_name,
            instance = execution.instance_id.0,
            execution = execution.id.0
        )
    }

    pub(super) fn end(&self, ended: &JobExecution) {
        let labels = [("job", self.job.clone()), ("status", ended.status.to_string())];
        histogram!("spring.batch.job", &labels).record(self.began.elapsed());
        let (status, exit_status) = (ended.status.as_str(), ended.exit_status.as_str());
        tracing::info!(status, exit_status, "job ended");
    }
}

impl Drop for ObservedJob {
    fn drop(&mut self) {
        self.active.decrement(1);
    }
}

/// A running step, or a partition of one.
pub(super) struct ObservedStep {
    job: String,
    step: String,
    began: Instant,
    active: Gauge,
}

impl ObservedStep {
    /// `step` is the id that all partitions share.
    pub(super) fn begin(job: &str, step: &str) -> Self {
        let labels = [("job", job.to_owned()), ("step", step.to_owned())];
        let active = gauge!("spring.batch.step.active", &labels);
        active.increment(1);
        tracing::info!("step started");
        Self {
            job: job.to_owned(),
            step: step.to_owned(),
            began: Instant::now(),
            active,
        }
    }

    /// Returns the span of the step, with the name of its row in the repository.
    pub(super) fn span(execution: &StepExecution) -> Span {
        tracing::error_span!(
            "step",
            step = execution.step_name,
            step_execution = execution.id.0
        )
    }

    pub(super) fn end(&self, status: BatchStatus, exit_status: &str, counters: StepCounters) {
        let labels = [
            ("job", self.job.clone()),
            ("step", self.step.clone()),
            ("status", status.to_string()),
        ];
        histogram!("spring.batch.step", &labels).record(self.began.elapsed());
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

impl Drop for ObservedStep {
    fn drop(&mut self) {
        self.active.decrement(1);
    }
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
