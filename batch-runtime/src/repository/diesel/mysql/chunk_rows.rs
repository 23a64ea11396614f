//! The two rows of a chunk, updated by two prepared statements.

use diesel::prelude::*;

use super::Connection;
use super::per_backend::contexts::update_context;
use super::per_backend::step_bounds::counter_columns;
use super::schema::step_execution;
use crate::repository::diesel::backend::{ChunkRows, UpdatedRows};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::update::update;

/// Implements `Backend::update_chunk_rows`.
pub(super) fn write(connection: &mut Connection, rows: &ChunkRows<'_>) -> QueryResult<UpdatedRows> {
    let of_version = step_execution::step_execution_id
        .eq(rows.step.0)
        .and(step_execution::version.eq(rows.version));
    let values = (
        step_execution::version.eq(rows.version + 1),
        counter_columns!(rows.counters),
        step_execution::last_updated.eq(rows.now),
    );
    let steps = update(step_execution::table.filter(of_version))
        .set(values)
        .execute(connection)?;
    let contexts = match steps {
        // The context of a partition that was reopened belongs to its next worker.
        0 => 0,
        _ => update_context(connection, rows.step, rows.context)?,
    };
    Ok(UpdatedRows {
        steps,
        contexts,
        has_ended: false,
    })
}
