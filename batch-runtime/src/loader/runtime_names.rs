//! The runtime properties of a job or step: extensions of the draft. Their names, and the values that a job sets for all its elements.

use std::time::Duration;

use batch_xml::Spanned;

use crate::back_off::BackOff;
use crate::engine::{ClassLimits, InnerSteps, Replan};
use crate::exit_codes::EXIT_CODES;

/// A runtime property has an invalid value, or is in the wrong place.
pub(super) const RUNTIME_PROPERTY: &str = "ART0012";

/// In seconds.
pub(super) const JOB_TIMEOUT: &str = "batch.job.timeout";
/// See [`Deadline`].
pub(super) const JOB_DEADLINE: &str = "batch.job.deadline";
/// `any`, `one` or `queue`.
pub(super) const JOB_CONCURRENCY: &str = "batch.job.concurrency";
/// In seconds.
pub(super) const STEP_TIMEOUT: &str = "batch.step.timeout";
/// In seconds.
pub(super) const STEP_HEARTBEAT: &str = "batch.step.heartbeat";
/// Names, separated by commas.
pub(super) const PROMOTE: &str = "batch.step.promote";
/// In bytes.
pub(super) const CHECKPOINT_LIMIT: &str = "batch.checkpoint.limit";
pub(super) const SPLIT_THREADS: &str = "batch.split.threads";
pub(super) const PARTITION_THREADS: &str = "batch.partition.threads";
/// `no`, `properties` or `all`.
pub(super) const PARTITION_REPLAN: &str = "batch.partition.replan";
/// The name of a dispatcher.
pub(super) const DISPATCH: &str = "batch.dispatch";
/// The queue of the tickets of partitions.
pub(super) const DISPATCH_QUEUE: &str = "batch.dispatch.queue";
/// `true` or `false`.
pub(super) const RETRY_INPUT: &str = "batch.retry.input";
pub(super) const PROCESSORS: &str = "batch.chunk.processors";
/// `true` or `false`.
pub(super) const PIPELINE: &str = "batch.chunk.pipeline";

/// In milliseconds.
pub(super) const BACKOFF_INITIAL: &str = "batch.retry.backoff.initial";
pub(super) const BACKOFF_MULTIPLIER: &str = "batch.retry.backoff.multiplier";
/// In milliseconds.
pub(super) const BACKOFF_MAX: &str = "batch.retry.backoff.max";
/// From 0 to 1.
pub(super) const BACKOFF_JITTER: &str = "batch.retry.backoff.jitter";
pub(super) const MAX_ATTEMPTS: &str = "batch.retry.max-attempts";
/// Exception classes with their limits.
pub(super) const RETRY_LIMITS: &str = "batch.retry.limits";
/// Exception classes with their limits.
pub(super) const SKIP_LIMITS: &str = "batch.skip.limits";
/// The name of an artifact.
pub(super) const SKIP_POLICY: &str = "batch.skip.policy";

/// The runtime properties that only a job has.
pub(super) const OF_JOB_ONLY: &[&str] = &[
    JOB_TIMEOUT,
    JOB_CONCURRENCY,
    JOB_DEADLINE,
    EXIT_CODES,
    SPLIT_THREADS,
];
/// The runtime properties of a step. On a job, they are the defaults of its steps.
pub(super) const OF_STEP: &[&str] = &[
    STEP_TIMEOUT,
    STEP_HEARTBEAT,
    PROMOTE,
    CHECKPOINT_LIMIT,
    PARTITION_THREADS,
    PARTITION_REPLAN,
    DISPATCH,
    DISPATCH_QUEUE,
    RETRY_INPUT,
    BACKOFF_INITIAL,
    BACKOFF_MULTIPLIER,
    BACKOFF_MAX,
    BACKOFF_JITTER,
    MAX_ATTEMPTS,
    RETRY_LIMITS,
    SKIP_LIMITS,
    SKIP_POLICY,
    PROCESSORS,
    PIPELINE,
];

/// Returns all runtime properties, which a job may have.
pub(super) fn of_job() -> impl Iterator<Item = &'static str> {
    OF_JOB_ONLY.iter().chain(OF_STEP).copied()
}

/// Returns whether a job may have the runtime property.
pub(super) fn is_of_job(name: &str) -> bool {
    of_job().any(|other| other == name)
}

/// The runtime properties that a job sets for all its elements.
#[derive(Clone, Default)]
pub(super) struct Defaults {
    pub(super) timeout: Option<usize>,
    pub(super) heartbeat: Option<usize>,
    pub(super) promoted: Vec<String>,
    pub(super) checkpoint_limit: Option<usize>,
    pub(super) split_threads: Option<usize>,
    pub(super) threads: Option<usize>,
    pub(super) replan: Option<Replan>,
    pub(super) dispatcher: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) retry_input: Option<bool>,
    pub(super) faults: FaultProperties,
    pub(super) processors: Option<usize>,
    pub(super) pipeline: Option<bool>,
}

/// The settings for the partitions of an element.
pub(super) struct PartitionSettings {
    pub(super) threads: Option<usize>,
    pub(super) replan: Replan,
    pub(super) dispatcher: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) is_chunk: bool,
    pub(super) inner: InnerSteps,
}

/// The runtime properties of a job or step for skips and retries.
#[derive(Clone, Default)]
pub(super) struct FaultProperties {
    pub(super) initial: Option<Duration>,
    pub(super) multiplier: Option<f64>,
    pub(super) max: Option<Duration>,
    pub(super) jitter: Option<f64>,
    pub(super) max_attempts: Option<u32>,
    pub(super) retry_limits: Option<ClassLimits>,
    pub(super) skip_limits: Option<ClassLimits>,
    pub(super) skip_policy: Option<Spanned<String>>,
}

impl FaultProperties {
    /// Returns the properties of a step, with the defaults of its job.
    pub(super) fn or(self, job: &Self) -> Self {
        Self {
            initial: self.initial.or(job.initial),
            multiplier: self.multiplier.or(job.multiplier),
            max: self.max.or(job.max),
            jitter: self.jitter.or(job.jitter),
            max_attempts: self.max_attempts.or(job.max_attempts),
            retry_limits: self.retry_limits.or_else(|| job.retry_limits.clone()),
            skip_limits: self.skip_limits.or_else(|| job.skip_limits.clone()),
            skip_policy: self.skip_policy.or_else(|| job.skip_policy.clone()),
        }
    }

    /// Returns the pauses before retries. If one of the properties is set, the others have the defaults of Spring Batch.
    pub(super) fn back_off(&self) -> BackOff {
        let is_set = self.initial.is_some() || self.max.is_some();
        if !is_set && self.multiplier.is_none() && self.jitter.is_none() {
            return BackOff::default();
        }
        let initial = self.initial.unwrap_or(Duration::from_millis(100));
        BackOff {
            quick: 0,
            initial,
            multiplier: self.multiplier.unwrap_or(2.0),
            max: self.max.unwrap_or(Duration::from_secs(30).max(initial)),
            jitter: self.jitter.unwrap_or(0.0),
        }
    }
}
