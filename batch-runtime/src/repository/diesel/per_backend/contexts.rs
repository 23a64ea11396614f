//! The contexts of executions, which hold their stored state.

use diesel::prelude::*;

use super::schema::{job_context, step_context};
use super::{Connection, Work, corrupt, rejected};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::diesel::one_of::one_of_many;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::update::update;
use crate::repository::rules;
use crate::repository::{DataChanges, JobState, StepState, StoredContext};

/// Functions that read and insert the context of an execution.
macro_rules! contexts {
    ($table:ident, $key:ident, $read:ident, $insert:ident) => {
        pub(super) fn $read(connection: &mut Connection, id: i64) -> QueryResult<Option<StoredContext>> {
            let row: Option<(String, Option<String>)> = $table::table
                .find(id)
                .select(($table::short_context, $table::serialized_context))
                .first(connection)
                .optional()?;
            Ok(row.map(|(short, serialized)| StoredContext { short, serialized }))
        }

        pub(super) fn $insert(
            connection: &mut Connection,
            id: i64,
            context: &StoredContext,
        ) -> QueryResult<usize> {
            diesel::insert_into($table::table)
                .values((
                    $table::$key.eq(id),
                    $table::short_context.eq(&context.short),
                    $table::serialized_context.eq(&context.serialized),
                ))
                .execute(connection)
        }
    };
}

contexts!(job_context, job_execution_id, job_context_in, insert_job_context);
contexts!(
    step_context,
    step_execution_id,
    step_context_in,
    insert_step_context
);

/// Returns the contexts of step executions, by id.
pub(super) fn step_contexts(
    connection: &mut Connection,
    steps: &[i64],
) -> QueryResult<Vec<(i64, StoredContext)>> {
    let rows: Vec<(i64, String, Option<String>)> = step_context::table
        .filter(one_of_many(step_context::step_execution_id, steps))
        .select((
            step_context::step_execution_id,
            step_context::short_context,
            step_context::serialized_context,
        ))
        .load(connection)?;
    let rows = rows.into_iter();
    Ok(rows
        .map(|(id, short, serialized)| (id, StoredContext { short, serialized }))
        .collect())
}

/// Returns the stored state of a step execution.
pub(super) fn step_state_in(connection: &mut Connection, step: StepExecutionId) -> Work<StepState> {
    match step_context_in(connection, step.0)? {
        Some(context) => step_state_of(connection, step, &context),
        // Without a context row the step starts without a checkpoint. Spec: RESTART-17
        None => Ok(StepState::default()),
    }
}

/// Decodes the stored state of a step execution.
pub(super) fn step_state_of(
    connection: &Connection,
    step: StepExecutionId,
    context: &StoredContext,
) -> Work<StepState> {
    StepState::decode(&context.json(connection.settings().format.layout))
        .map_err(|problem| corrupt(format!("the context of step execution {step}"), problem))
}

/// Updates the context of a step execution. Returns the number of rows.
pub(in crate::repository::diesel) fn update_context(
    connection: &mut Connection,
    step: StepExecutionId,
    context: &StoredContext,
) -> QueryResult<usize> {
    let of_step = step_context::step_execution_id.eq(step.0);
    let values = (
        step_context::short_context.eq(&context.short),
        step_context::serialized_context.eq(&context.serialized),
    );
    update(step_context::table.filter(of_step))
        .set(values)
        .execute(connection)
}

/// Returns the stored state of a job execution. Without its row, a rollback that is still owed would be forgotten.
pub(super) fn job_state_in(connection: &mut Connection, execution: i64) -> Work<JobState> {
    let state = job_state_if_any(connection, execution)?;
    state.ok_or_else(|| rejected(rules::no_context(JobExecutionId(execution))))
}

/// Returns the stored state of a job execution; `None` if it has no context.
pub(super) fn job_state_if_any(connection: &mut Connection, execution: i64) -> Work<Option<JobState>> {
    let layout = connection.settings().format.layout;
    let context = job_context_in(connection, execution)?;
    let state = context.map(|context| JobState::decode(&context.json(layout)));
    let state = state.transpose();
    state.map_err(|problem| corrupt(format!("the context of job execution {execution}"), problem))
}

/// Returns the stored state of a job execution, for a change: no other transaction changes it until this one has ended.
pub(super) fn locked_job_state(connection: &mut Connection, execution: JobExecutionId) -> Work<JobState> {
    // It changes nothing, and locks the row on every database: the state is read, changed and written as a whole.
    update(job_context::table.find(execution.0))
        .set(job_context::short_context.eq(job_context::short_context))
        .execute(connection)?;
    job_state_in(connection, execution.0)
}

/// Changes the data of a job execution.
pub(super) fn change_job_data(
    connection: &mut Connection,
    execution: JobExecutionId,
    changes: &DataChanges,
) -> Work<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut state = locked_job_state(connection, execution)?;
    state.change_data(changes);
    save_job_state(connection, execution, &state)
}

/// Writes the stored state of a job execution.
pub(super) fn save_job_state(
    connection: &mut Connection,
    execution: JobExecutionId,
    state: &JobState,
) -> Work<()> {
    let row = || format!("the context of job execution {execution}");
    let context = state.encode(&connection.settings().format);
    let context = context.map_err(|error| corrupt(row(), error))?;
    let changed = update(job_context::table.find(execution.0))
        .set((
            job_context::short_context.eq(context.short),
            job_context::serialized_context.eq(context.serialized),
        ))
        .execute(connection)?;
    match changed {
        1 => Ok(()),
        // Without the row, a rollback that is still owed would be forgotten.
        _ => Err(corrupt(row(), "has been deleted while the job was running")),
    }
}

/// Fails if a context row is missing: without it the checkpoint would be lost silently.
pub(super) fn require_context(changed: usize, step: StepExecutionId) -> Work<()> {
    match changed {
        1 => Ok(()),
        _ => Err(corrupt(
            format!("the context of step execution {step}"),
            "has been deleted while the step was running",
        )),
    }
}
