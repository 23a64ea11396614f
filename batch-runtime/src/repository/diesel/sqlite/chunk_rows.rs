//! The two rows of a chunk, each updated by a statement with a fixed text: walking through diesel's expressions of twelve columns takes
//! longer than binding their values.

use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::sqlite::Sqlite;

use super::Connection;
use crate::repository::diesel::backend::{ChunkRows, UpdatedRows};
use crate::repository::diesel::session::RunQueryDsl;

/// Implements `Backend::update_chunk_rows`.
pub(super) fn write(connection: &mut Connection, rows: &ChunkRows<'_>) -> QueryResult<UpdatedRows> {
    let counters = rows.counters;
    let step = UpdateStep([
        rows.version + 1,
        counters.reads,
        counters.writes,
        counters.filters,
        counters.commits,
        counters.rollbacks,
        counters.read_skips,
        counters.process_skips,
        counters.write_skips,
        rows.now.0,
        rows.step.0,
        rows.version,
    ]);
    let steps = step.execute(connection)?;
    let contexts = match steps {
        // The context of a partition that was reopened belongs to its next worker.
        0 => 0,
        _ => UpdateContext(rows).execute(connection)?,
    };
    Ok(UpdatedRows {
        steps,
        contexts,
        has_ended: false,
    })
}

/// Updates the row of the step; the values are in the order of `STEP`.
struct UpdateStep([i64; 12]);

/// What precedes each value.
const STEP: [&str; 12] = [
    "UPDATE BATCH_STEP_EXECUTION SET VERSION = ",
    ", READ_COUNT = ",
    ", WRITE_COUNT = ",
    ", FILTER_COUNT = ",
    ", COMMIT_COUNT = ",
    ", ROLLBACK_COUNT = ",
    ", READ_SKIP_COUNT = ",
    ", PROCESS_SKIP_COUNT = ",
    ", WRITE_SKIP_COUNT = ",
    ", LAST_UPDATED = ",
    " WHERE STEP_EXECUTION_ID = ",
    " AND VERSION = ",
];

impl QueryFragment<Sqlite> for UpdateStep {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        for (text, value) in STEP.iter().zip(&self.0) {
            out.push_sql(text);
            out.push_bind_param::<BigInt, _>(value)?;
        }
        Ok(())
    }
}

/// Updates the context of the step.
struct UpdateContext<'a>(&'a ChunkRows<'a>);

impl QueryFragment<Sqlite> for UpdateContext<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        let context = self.0.context;
        out.push_sql("UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = ");
        out.push_bind_param::<Text, _>(&context.short)?;
        out.push_sql(", SERIALIZED_CONTEXT = ");
        out.push_bind_param::<Nullable<Text>, _>(&context.serialized)?;
        out.push_sql(" WHERE STEP_EXECUTION_ID = ");
        out.push_bind_param::<BigInt, _>(&self.0.step.0)
    }
}

/// The texts are always the same, so diesel finds the prepared statements by the types.
macro_rules! fixed_text {
    ($query:ty, $id:ty) => {
        impl QueryId for $query {
            type QueryId = $id;

            const HAS_STATIC_QUERY_ID: bool = true;
        }
    };
}

fixed_text!(UpdateStep, UpdateStep);
fixed_text!(UpdateContext<'_>, UpdateContext<'static>);
