//! The names of attributes and events. Names for errors come from the semantic conventions, which have none for batch jobs.

use batch_runtime::execution::StepCounters;
use opentelemetry::KeyValue;

pub(crate) const JOB_NAME: &str = "batch.job.name";
pub(crate) const JOB_INSTANCE: &str = "batch.job.instance.id";
pub(crate) const JOB_EXECUTION: &str = "batch.job.execution.id";
pub(crate) const JOB_STATUS: &str = "batch.job.status";
pub(crate) const JOB_EXIT_STATUS: &str = "batch.job.exit_status";
pub(crate) const STEP_NAME: &str = "batch.step.name";
pub(crate) const STEP_EXECUTION: &str = "batch.step.execution.id";
pub(crate) const STEP_STATUS: &str = "batch.step.status";
pub(crate) const STEP_EXIT_STATUS: &str = "batch.step.exit_status";
pub(crate) const PARTITION_NAME: &str = "batch.partition.name";
pub(crate) const CHUNK_NUMBER: &str = "batch.chunk.number";
pub(crate) const ITEM_PHASE: &str = "batch.item.phase";
pub(crate) const EVENTS: &str = "batch.observer.events";

pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const EXCEPTION_MESSAGE: &str = "exception.message";

pub(crate) const SKIP: &str = "batch.item.skip";
pub(crate) const RETRY: &str = "batch.item.retry";
pub(crate) const ROLLBACK: &str = "batch.chunk.rollback";
pub(crate) const TAKEOVER: &str = "batch.job.takeover";
pub(crate) const WAIT: &str = "batch.job.wait";
pub(crate) const TURN: &str = "batch.job.turn";
pub(crate) const STOP: &str = "batch.job.stop";
pub(crate) const LEASE_LOST: &str = "batch.job.lease_lost";
pub(crate) const EVENTS_DROPPED: &str = "batch.observer.events_dropped";

/// Returns the numbers of items of a step.
pub(crate) fn items_of_step(counters: &StepCounters) -> [KeyValue; 4] {
    let skips = counters.read_skips + counters.process_skips + counters.write_skips;
    [
        KeyValue::new("batch.step.items.read", counters.reads),
        KeyValue::new("batch.step.items.written", counters.writes),
        KeyValue::new("batch.step.items.filtered", counters.filters),
        KeyValue::new("batch.step.items.skipped", skips),
    ]
}

/// Returns the numbers of items of a chunk.
pub(crate) fn items_of_chunk(before: &StepCounters, after: &StepCounters) -> [KeyValue; 4] {
    let skips = |counters: &StepCounters| counters.read_skips + counters.process_skips + counters.write_skips;
    [
        KeyValue::new("batch.chunk.items.read", after.reads - before.reads),
        KeyValue::new("batch.chunk.items.written", after.writes - before.writes),
        KeyValue::new("batch.chunk.items.filtered", after.filters - before.filters),
        KeyValue::new("batch.chunk.items.skipped", skips(after) - skips(before)),
    ]
}
