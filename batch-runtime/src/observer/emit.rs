//! The sources of events: a job execution, or the partitions of one in this process, and its steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::progress::{Progress, ProgressObserver};
use super::{
    DatasetReporter, ItemPhase, JobEnd, JobEventKind, JobTrace, ObservedJob, ObservedOuter, ObservedStep,
    Observers, StepBody, StepEnd,
};
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::JobExecutionId;
use crate::repository::{Ending, JobRepository, Lease};
use crate::secret::Secrets;

/// The events of a job execution that runs in this process, or of a partition of it.
pub(crate) struct JobEvents {
    observers: Arc<Observers>,
    job: Arc<ObservedJob>,
    progress: ProgressObserver,
    began: Instant,
}

impl JobEvents {
    pub(crate) fn new(
        observers: &Arc<Observers>,
        job: &str,
        lease: &Lease,
        trace: JobTrace,
        outer: Option<Box<ObservedOuter>>,
    ) -> Self {
        Self {
            observers: Arc::clone(observers),
            job: Arc::new(ObservedJob {
                job: job.to_owned(),
                instance: lease.instance_id,
                execution: lease.execution_id,
                trace,
                outer,
            }),
            progress: ProgressObserver::default(),
            began: Instant::now(),
        }
    }

    /// Creates the events of a job without observers.
    #[cfg(test)]
    pub(crate) fn unobserved(lease: &Lease) -> Self {
        let observers = Observers::start(Arc::new(crate::clock::SystemClock), []);
        Self::new(
            &Arc::new(observers.unwrap()),
            "job",
            lease,
            JobTrace::default(),
            None,
        )
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.progress()
    }

    /// Returns the context of its trace.
    pub(crate) fn traceparent(&self) -> Option<&str> {
        self.job.trace.context.as_deref()
    }

    pub(crate) fn emit(&self, kind: JobEventKind) {
        self.observers.emit(&self.job, None, kind, &self.progress);
    }

    /// Emits the ends of other executions, which were closed because their processes are dead.
    pub(crate) fn closed(&self, repository: &dyn JobRepository, closed: &[JobExecutionId]) {
        self.observers.emit_closed(repository, closed);
    }

    pub(crate) fn ended(&self, execution: &JobExecution) {
        self.emit(JobEventKind::JobEnded(Box::new(JobEnd {
            status: execution.status,
            exit_status: execution.exit_status.clone(),
            exit_message: execution.exit_message.clone(),
            elapsed: self.began.elapsed(),
        })));
    }

    /// Emits the start of a step or partition, after executions with the counters `earlier`.
    pub(crate) fn step_started(
        &self,
        step: &str,
        execution: &StepExecution,
        is_partition: bool,
        body: StepBody,
        earlier: StepCounters,
    ) -> StepEvents<'_> {
        let events = StepEvents {
            job: self,
            step: Arc::new(ObservedStep {
                step: step.to_owned(),
                name: execution.step_name.clone(),
                execution: execution.id,
                is_partition,
                body,
            }),
            began: Instant::now(),
            has_ended: AtomicBool::new(false),
        };
        events.emit(JobEventKind::StepStarted { earlier });
        events
    }
}

/// The events of a step or partition. If it is dropped before its end, the step is lost.
pub(crate) struct StepEvents<'j> {
    job: &'j JobEvents,
    step: Arc<ObservedStep>,
    began: Instant,
    has_ended: AtomicBool,
}

impl StepEvents<'_> {
    pub(crate) fn emit(&self, kind: JobEventKind) {
        let JobEvents {
            observers,
            job,
            progress,
            ..
        } = self.job;
        observers.emit(job, Some(&self.step), kind, progress);
    }

    /// Returns what reports the datasets of the step; `None` if the program has no observers.
    pub(crate) fn datasets(&self, secrets: impl FnOnce() -> Secrets) -> Option<DatasetReporter> {
        let JobEvents { observers, job, .. } = self.job;
        observers.are_any().then(|| DatasetReporter {
            observers: Arc::clone(observers),
            job: Arc::clone(job),
            step: Arc::clone(&self.step),
            secrets: secrets(),
            reported: Mutex::default(),
        })
    }

    /// Emits a skip; `error` is called if an observer wants to know it.
    pub(crate) fn skipped(&self, phase: ItemPhase, error: impl FnOnce() -> String) {
        if self.job.observers.are_any() {
            let error = error();
            self.emit(JobEventKind::ItemSkipped { phase, error });
        }
    }

    /// Emits a retry; `error` is called if an observer wants to know it.
    pub(crate) fn retried(&self, phase: ItemPhase, error: impl FnOnce() -> String) {
        if self.job.observers.are_any() {
            let error = error();
            self.emit(JobEventKind::ItemRetried { phase, error });
        }
    }

    pub(crate) fn ended(&self, ending: &Ending, counters: StepCounters) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.emit(JobEventKind::StepEnded(Box::new(StepEnd {
            status: ending.status,
            exit_status: ending.exit_status.clone(),
            exit_message: ending.message.clone(),
            counters,
            elapsed: self.began.elapsed(),
        })));
    }
}

impl Drop for StepEvents<'_> {
    fn drop(&mut self) {
        if !self.has_ended.load(Ordering::Relaxed) {
            self.emit(JobEventKind::StepLost);
        }
    }
}
