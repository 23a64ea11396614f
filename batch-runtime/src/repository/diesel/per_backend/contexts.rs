//! The contexts of executions, which hold their stored state.

use diesel::prelude::*;

use super::schema::{batch_job_execution_context, batch_step_execution, batch_step_execution_context};
use super::{Connection, Work, rejected};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::{JobState, RepositoryError, StepState, StoredContext};

/// Returns the stored state of a step execution.
pub(super) fn step_state_in(connection: &mut Connection, step: StepExecutionId) -> Work<StepState> {
    let row: Option<(String, Option<String>)> = batch_step_execution_context::table
        .find(step.0)
        .select((
            batch_step_execution_context::short_context,
            batch_step_execution_context::serialized_context,
        ))
        .first(connection)
        .optional()?;
    // Without a context row the step starts without a checkpoint. Spec: RESTART-17
    let Some((short, serialized)) = row else {
        return Ok(StepState::default());
    };
    StepState::decode(&serialized.unwrap_or(short)).map_err(|problem| {
        rejected(RepositoryError::Corrupt {
            row: format!("the context of step execution {step}"),
            problem,
        })
    })
}

/// Returns whether the latest executions of a step were run by another program and one of them has commits.
pub(super) fn has_commits_of_other_program(
    connection: &mut Connection,
    executions: &[JobExecutionId],
    step_name: &str,
) -> Work<bool> {
    let ids: Vec<i64> = executions.iter().map(|id| id.0).collect();
    let latest_first: Vec<(i64, Option<i64>)> = batch_step_execution::table
        .filter(batch_step_execution::step_name.eq(step_name))
        .filter(batch_step_execution::job_execution_id.eq_any(ids))
        .order(batch_step_execution::step_execution_id.desc())
        .select((
            batch_step_execution::step_execution_id,
            batch_step_execution::commit_count,
        ))
        .load(connection)?;
    for (step, commits) in latest_first {
        if !step_state_in(connection, StepExecutionId(step))?.of_other_program {
            return Ok(false);
        }
        if commits > Some(0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the stored state of a job execution; an empty one if the row was deleted.
pub(super) fn job_state_in(connection: &mut Connection, execution: i64) -> Work<JobState> {
    let context: Option<(String, Option<String>)> = batch_job_execution_context::table
        .find(execution)
        .select((
            batch_job_execution_context::short_context,
            batch_job_execution_context::serialized_context,
        ))
        .first(connection)
        .optional()?;
    let Some((short, serialized)) = context else {
        return Ok(JobState::default());
    };
    JobState::decode(&serialized.unwrap_or(short)).map_err(|problem| {
        rejected(RepositoryError::Corrupt {
            row: format!("the context of job execution {execution}"),
            problem,
        })
    })
}

/// Returns the initial context of an execution that follows another one. It keeps the entries of other programs, as they do
/// themselves. A context that cannot be decoded is reported later, where its own entries are read.
pub(super) fn context_after(connection: &mut Connection, execution: i64) -> QueryResult<StoredContext> {
    match job_state_in(connection, execution) {
        Ok(state) => Ok(state.for_next()),
        Err(TransactionError::Database(error)) => Err(error),
        Err(_) => Ok(JobState::default().for_next()),
    }
}

/// Writes the stored state of a job execution.
pub(super) fn save_job_state(
    connection: &mut Connection,
    execution: JobExecutionId,
    state: &JobState,
) -> Work<()> {
    let context = state.encode().map_err(|error| {
        rejected(RepositoryError::Corrupt {
            row: format!("the context of job execution {execution}"),
            problem: error.to_string(),
        })
    })?;
    let changed = diesel::update(batch_job_execution_context::table.find(execution.0))
        .set((
            batch_job_execution_context::short_context.eq(context.short),
            batch_job_execution_context::serialized_context.eq(context.serialized),
        ))
        .execute(connection)?;
    if changed == 1 {
        return Ok(());
    }
    // Without the row, a rollback that is still owed would be forgotten.
    Err(rejected(RepositoryError::Corrupt {
        row: format!("the context of job execution {execution}"),
        problem: "has been deleted while the job was running".into(),
    }))
}
