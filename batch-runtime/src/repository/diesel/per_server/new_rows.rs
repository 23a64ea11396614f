//! Inserts of several rows by one statement.

use diesel::prelude::*;

use super::super::per_backend::step_bounds::counter_columns;
use super::super::per_backend::step_store::new_step_columns;
use super::Connection;
use super::schema::{created_step, step_execution};
use crate::repository::diesel::backend::NewStep;
use crate::repository::diesel::session::RunQueryDsl;

/// Implements `Backend::insert_steps`.
pub(in crate::repository::diesel) fn insert_steps(
    connection: &mut Connection,
    steps: &[NewStep<'_>],
) -> QueryResult<()> {
    let is_created = connection.layout().has_typed_parameters();
    // The text of several rows depends on their number, so diesel prepares it at each execution.
    let inserted = match steps {
        [step] if is_created => diesel::insert_into(created_step::table)
            .values((
                new_step_columns!(step, created_step),
                created_step::create_time.eq(step.now),
            ))
            .execute(connection)?,
        [step] => diesel::insert_into(step_execution::table)
            .values(new_step_columns!(step, step_execution))
            .execute(connection)?,
        steps if is_created => {
            let created = |step: &NewStep<'_>| created_step::create_time.eq(step.now);
            let row = |step| (new_step_columns!(step, created_step), created(step));
            let rows: Vec<_> = steps.iter().map(row).collect();
            diesel::insert_into(created_step::table)
                .values(rows)
                .execute(connection)?
        }
        steps => {
            let row = |step| new_step_columns!(step, step_execution);
            let rows: Vec<_> = steps.iter().map(row).collect();
            diesel::insert_into(step_execution::table)
                .values(rows)
                .execute(connection)?
        }
    };
    debug_assert_eq!(inserted, steps.len());
    Ok(())
}
