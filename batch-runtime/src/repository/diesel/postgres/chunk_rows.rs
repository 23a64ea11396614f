//! The two rows of a chunk, updated by one statement, which saves a round trip to the server.

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::Error as DieselError;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamp};

use super::{Connection, RunQueryDsl};
use crate::execution::StepCounters;
use crate::repository::StoredContext;
use crate::repository::diesel::backend::{ChunkRows, UpdatedRows};
use crate::repository::diesel::db_timestamp::DbTimestamp;

/// Implements `Backend::update_chunk_rows`.
pub(super) fn write(connection: &mut Connection, rows: &ChunkRows<'_>) -> QueryResult<UpdatedRows> {
    let update = UpdateChunkRows {
        step: rows.step.0,
        version: rows.version,
        new_version: rows.version + 1,
        counts: counts_of(rows.counters),
        now: rows.now,
        context: rows.context,
    };
    match update.get_result::<(i64, i64, bool)>(connection) {
        Ok((steps, contexts, is_open)) => Ok(UpdatedRows {
            steps: usize::from(steps > 0),
            contexts: usize::from(contexts > 0),
            has_ended: !is_open,
        }),
        // The writer has ignored the error of its own statement; what it wrote cannot be committed.
        Err(error) if is_aborted(&error) => Ok(UpdatedRows {
            steps: 0,
            contexts: 0,
            has_ended: true,
        }),
        Err(error) => Err(error),
    }
}

/// Returns the columns of the counters with their values.
pub(super) fn counts_of(counters: StepCounters) -> [(&'static str, i64); 8] {
    [
        ("read_count", counters.reads),
        ("write_count", counters.writes),
        ("filter_count", counters.filters),
        ("commit_count", counters.commits),
        ("rollback_count", counters.rollbacks),
        ("read_skip_count", counters.read_skips),
        ("process_skip_count", counters.process_skips),
        ("write_skip_count", counters.write_skips),
    ]
}

/// Returns whether an earlier statement of the transaction has failed. diesel has no kind for it.
fn is_aborted(error: &DieselError) -> bool {
    matches!(error, DieselError::DatabaseError(_, about)
        if about.message().starts_with("current transaction is aborted"))
}

/// Updates the row of the step and, if it still has `version`, the row of its context. Returns the number of each, and whether the transaction of
/// `BEGIN_CHUNK` is still open; if not, it updates nothing.
struct UpdateChunkRows<'a> {
    step: i64,
    version: i64,
    new_version: i64,
    counts: [(&'static str, i64); 8],
    now: DbTimestamp,
    context: &'a StoredContext,
}

/// The text is always the same, so diesel finds the prepared statement by the type.
impl QueryId for UpdateChunkRows<'_> {
    type QueryId = UpdateChunkRows<'static>;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for UpdateChunkRows<'_> {
    type SqlType = (BigInt, BigInt, Bool);
}

impl QueryFragment<Pg> for UpdateChunkRows<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH step AS (UPDATE batch_step_execution SET last_updated = ");
        out.push_bind_param::<Timestamp, _>(&self.now)?;
        out.push_sql(", version = ");
        out.push_bind_param::<BigInt, _>(&self.new_version)?;
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
            " AND current_setting('batch.chunk', true) = 'open' RETURNING step_execution_id), context AS (UPDATE batch_step_execution_context SET short_context = ",
        );
        out.push_bind_param::<Text, _>(&self.context.short)?;
        out.push_sql(", serialized_context = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.context.serialized)?;
        out.push_sql(
            " WHERE step_execution_id IN (SELECT step_execution_id FROM step) RETURNING 1) \
             SELECT (SELECT COUNT(*) FROM step), (SELECT COUNT(*) FROM context), \
             COALESCE(current_setting('batch.chunk', true) = 'open', false)",
        );
        Ok(())
    }
}
