//! The rows of a checkpoint, each by a statement of its own: diesel prepares these once, as their types are static.

use diesel::prelude::*;

use super::schema::batch_step_execution;
use super::steps::{Written, counter_columns, update_context};
use super::{Connection, Moment, RunQueryDsl};
use crate::execution::StepCounters;
use crate::ids::StepExecutionId;
use crate::repository::StoredContext;

/// Spec: CHUNK-LOOP-12, REPO-15, REPO-62
pub(super) fn write_checkpoint(
    connection: &mut Connection,
    step: StepExecutionId,
    version: i64,
    counters: StepCounters,
    context: &StoredContext,
    now: Moment,
) -> QueryResult<Written> {
    let row = batch_step_execution::table
        .find(step.0)
        .filter(batch_step_execution::version.eq(version));
    let steps = diesel::update(row)
        .set((
            batch_step_execution::version.eq(version + 1),
            counter_columns!(counters),
            batch_step_execution::last_updated.eq(now),
        ))
        .execute(connection)?;
    let contexts = match steps {
        0 => 0,
        _ => update_context(connection, step, context)?,
    };
    Ok(Written { steps, contexts })
}
