//! The rows of a checkpoint in one statement: each statement is a way to the server and back.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text, Timestamp};

use super::steps::Written;
use super::{Connection, Moment, RunQueryDsl};
use crate::execution::{StepCounters, StepExecution};
use crate::repository::StoredContext;

/// The context is written if the step execution is.
const WRITE: &str = "
    WITH step AS (
        UPDATE batch_step_execution SET version = $2 + 1, read_count = $3, write_count = $4, filter_count = $5,
            commit_count = $6, rollback_count = $7, read_skip_count = $8, process_skip_count = $9, write_skip_count = $10,
            last_updated = $11
        WHERE step_execution_id = $1 AND version = $2
        RETURNING step_execution_id
    ), context AS (
        UPDATE batch_step_execution_context SET short_context = $12, serialized_context = $13
        WHERE step_execution_id IN (SELECT step_execution_id FROM step)
        RETURNING step_execution_id
    )
    SELECT (SELECT COUNT(*) FROM step) AS steps, (SELECT COUNT(*) FROM context) AS contexts";

#[derive(QueryableByName)]
struct Counts {
    #[diesel(sql_type = BigInt)]
    steps: i64,
    #[diesel(sql_type = BigInt)]
    contexts: i64,
}

/// Spec: CHUNK-LOOP-12, REPO-15, REPO-62
pub(super) fn write_checkpoint(
    connection: &mut Connection,
    step: &StepExecution,
    counters: StepCounters,
    context: &StoredContext,
    now: Moment,
) -> QueryResult<Written> {
    let counts: Counts = diesel::sql_query(WRITE)
        .bind::<BigInt, _>(step.id.0)
        .bind::<BigInt, _>(step.version)
        .bind::<BigInt, _>(counters.reads)
        .bind::<BigInt, _>(counters.writes)
        .bind::<BigInt, _>(counters.filters)
        .bind::<BigInt, _>(counters.commits)
        .bind::<BigInt, _>(counters.rollbacks)
        .bind::<BigInt, _>(counters.read_skips)
        .bind::<BigInt, _>(counters.process_skips)
        .bind::<BigInt, _>(counters.write_skips)
        .bind::<Timestamp, _>(now)
        .bind::<Text, _>(&context.short)
        .bind::<Nullable<Text>, _>(&context.serialized)
        .get_result(connection)?;
    Ok(Written {
        steps: usize::from(counts.steps > 0),
        contexts: usize::from(counts.contexts > 0),
    })
}
