//! Observers of running jobs: [`JobObserver`], and the events that they receive.
//!
//! Metrics, log events and progress are observers of the runtime. A program adds its own by
//! [`BatchRuntimeBuilder::observer`](crate::BatchRuntimeBuilder::observer).
//!
//! An observer cannot hold a job up. It has its own thread and queue: if it blocks until the queue is full, further events are dropped for
//! it, and `EventsDropped` reports how many; if it panics, that is logged, and it gets the next event. When the last clone of the runtime
//! is dropped, it waits up to five seconds for the observers to receive the rest. An observer must not own its runtime or an operator of
//! it, which would then never end.
// Spec: OBS-01 to OBS-07

mod closed;
mod dataset;
mod dataset_reporter;
mod emit;
mod event;
mod log;
mod metrics;
mod observers;
mod outer;
pub(crate) mod progress;
mod queue;

pub use self::dataset::{Dataset, DatasetField, DatasetRole};
pub use self::event::{
    ClosedJob, ItemPhase, JobEnd, JobEvent, JobEventKind, JobTrace, ObservedJob, ObservedOuter, ObservedStep,
    StepBody, StepEnd,
};

pub(crate) use self::dataset_reporter::DatasetReporter;
pub(crate) use self::emit::{JobEvents, StepEvents};
pub(crate) use self::observers::Observers;
pub(crate) use self::outer::outer_of;

/// Receives what happens to jobs of a runtime: the start and end of jobs, steps and partitions; chunks, skips and retries; takeovers and
/// stop requests; the datasets of steps. There is no event for each item.
///
/// Events of one job execution arrive in the order they happened; events of its partitions are interleaved. A closure is an observer too.
///
/// ```
/// use batch_runtime::BatchRuntime;
/// use batch_runtime::observer::{JobEvent, JobEventKind};
///
/// let runtime = BatchRuntime::builder()
///     .repository("memory:")
///     .observer(|event: &JobEvent| {
///         if let JobEventKind::JobEnded(end) = &event.kind {
///             println!("{} ended {}", event.job.job, end.status);
///         }
///     })
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait JobObserver: Send + Sync {
    /// Handles an event. Called on a thread of the observer, with one event of each runtime at a time.
    fn on_event(&self, event: &JobEvent);

    /// Returns the context of a new trace for an execution of `job`, as the W3C header `traceparent`. Default: `None`, nothing is traced.
    ///
    /// Called when the execution is about to be created, on the thread that launches the job, which waits: return at once. The launch may
    /// still fail, so that no event follows. The context of the first observer that returns one is stored with the execution. Its events
    /// have the context as [`JobTrace::context`], in worker processes too; events of the next execution of the instance have it as
    /// [`JobTrace::previous`].
    // Spec: OTEL-03
    fn trace_job(&self, _job: &str) -> Option<String> {
        None
    }
}

impl<F: Fn(&JobEvent) + Send + Sync> JobObserver for F {
    fn on_event(&self, event: &JobEvent) {
        self(event);
    }
}
