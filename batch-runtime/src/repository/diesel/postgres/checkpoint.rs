//! The rows of a checkpoint in one statement: each statement is a way to the server and back.

use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Nullable, Text, Timestamp};

use super::steps::Written;
use super::{Backend, Connection, Moment, RunQueryDsl};
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
    let checkpoint = Checkpoint {
        step: step.0,
        version,
        counts: [
            ("version", version + 1),
            ("read_count", counters.reads),
            ("write_count", counters.writes),
            ("filter_count", counters.filters),
            ("commit_count", counters.commits),
            ("rollback_count", counters.rollbacks),
            ("read_skip_count", counters.read_skips),
            ("process_skip_count", counters.process_skips),
            ("write_skip_count", counters.write_skips),
        ],
        now,
        context,
    };
    let (steps, contexts): (i64, i64) = checkpoint.get_result(connection)?;
    Ok(Written {
        steps: usize::from(steps > 0),
        contexts: usize::from(contexts > 0),
    })
}

/// Counts the rows of the step and of its context that it has written; the context's is written if the step's is.
struct Checkpoint<'a> {
    step: i64,
    version: i64,
    counts: [(&'static str, i64); 9],
    now: Moment,
    context: &'a StoredContext,
}

/// Its text is always the same, so that diesel finds what it has prepared by the type alone.
impl QueryId for Checkpoint<'_> {
    type QueryId = Checkpoint<'static>;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for Checkpoint<'_> {
    type SqlType = (BigInt, BigInt);
}

impl QueryFragment<Backend> for Checkpoint<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Backend>) -> QueryResult<()> {
        out.push_sql("WITH step AS (UPDATE batch_step_execution SET last_updated = ");
        out.push_bind_param::<Timestamp, _>(&self.now)?;
        for (column, count) in &self.counts {
            out.push_sql(", ");
            out.push_sql(column);
            out.push_sql(" = ");
            out.push_bind_param::<BigInt, _>(count)?;
        }
        out.push_sql(" WHERE step_execution_id = ");
        out.push_bind_param::<BigInt, _>(&self.step)?;
        out.push_sql(" AND version = ");
        out.push_bind_param::<BigInt, _>(&self.version)?;
        out.push_sql(
            " RETURNING step_execution_id), context AS (UPDATE batch_step_execution_context SET short_context = ",
        );
        out.push_bind_param::<Text, _>(&self.context.short)?;
        out.push_sql(", serialized_context = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.context.serialized)?;
        out.push_sql(
            " WHERE step_execution_id IN (SELECT step_execution_id FROM step) RETURNING 1) \
             SELECT (SELECT COUNT(*) FROM step), (SELECT COUNT(*) FROM context)",
        );
        Ok(())
    }
}
