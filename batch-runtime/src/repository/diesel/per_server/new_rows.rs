//! Inserts of several rows by one statement.

use diesel::prelude::*;

use super::super::per_backend::step_store::{counter_columns, new_step_columns};
use super::Connection;
use super::schema::step_execution;
use crate::repository::diesel::backend::NewStep;
use crate::repository::diesel::session::RunQueryDsl;

/// Implements `Backend::insert_steps`.
pub(in crate::repository::diesel) fn insert_steps(
    connection: &mut Connection,
    steps: &[NewStep<'_>],
) -> QueryResult<()> {
    let inserted = match steps {
        // The text of several rows depends on their number, so diesel prepares it at each execution.
        [step] => diesel::insert_into(step_execution::table)
            .values(new_step_columns!(step))
            .execute(connection)?,
        steps => {
            let rows: Vec<_> = steps.iter().map(|step| new_step_columns!(step)).collect();
            diesel::insert_into(step_execution::table)
                .values(rows)
                .execute(connection)?
        }
    };
    debug_assert_eq!(inserted, steps.len());
    Ok(())
}
