//! The begin and the end of step executions.

use diesel::prelude::*;

use super::contexts::{change_job_data, update_context};
use super::schema::step_execution;
use super::step_store::{at_version, counter_columns, is_as_written, require_context};
use super::{Connection, Db, Repository, Work, fenced_if_none};
use crate::execution::StepExecution;
use crate::repository::diesel::backend::{Backend, EndedStep, StartedStep};
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::pool::unknown_outcome;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::diesel::update::update;
use crate::repository::rules::stored_message;
use crate::repository::{DataChanges, Ending, Lease, RepositoryError, StepState};
use crate::status::BatchStatus;

impl Repository {
    /// Implements `StepStore::begin_step`.
    pub(super) fn record_begin(&self, step: &mut StepExecution) -> Result<(), RepositoryError> {
        const ACTION: &str = "record the start of the step execution";
        let now = self.now().max(self.column(step.started));
        self.pool
            .write_statement_relaxed(ACTION, |connection, in_doubt| {
                let changed = make_started(connection, &started_step(step, now))?;
                if in_doubt && changed == 0 && is_as_written(connection, step, BatchStatus::Started, now)? {
                    return Ok(());
                }
                fenced_if_none(changed, ACTION)
            })?;
        self.set_started(step, now);
        Ok(())
    }

    /// Changes STARTING to STARTED; only the first of several callers succeeds. If the outcome is unknown, none of them has the step.
    pub(super) fn claim_starting(&self, step: &mut StepExecution) -> Result<(), RepositoryError> {
        const ACTION: &str = "claim the step execution";
        let now = self.now().max(self.column(step.started));
        self.pool
            .write_relaxed(ACTION, |connection, in_doubt| match in_doubt {
                true => Err(TransactionError::Database(unknown_outcome())),
                false => fenced_if_none(make_started(connection, &started_step(step, now))?, ACTION),
            })?;
        self.set_started(step, now);
        Ok(())
    }

    /// Implements `StepStore::end_step`.
    pub(super) fn record_end(
        &self,
        lease: &Lease,
        step: &mut StepExecution,
        (ending, state, data): (&Ending, Option<&StepState>, &DataChanges),
        next: Option<&mut StepExecution>,
    ) -> Result<(), RepositoryError> {
        const ACTION: &str = "record the end of the step execution";
        let now = self.now().max(self.column(step.started));
        let started = next
            .as_ref()
            .map(|next| started_step(next, now.max(self.column(next.started))));
        let message = stored_message(&ending.message, self.settings.format.max_varchar);
        let ended = EndedStep {
            id: step.id.0,
            version: step.version,
            status: ending.status.as_str(),
            counters: step.counters,
            exit_code: &ending.exit_status,
            exit_message: &message,
            now,
        };
        let ends_lease = lease.partition == Some(step.id);
        let write = |connection: &mut Connection, in_doubt: bool| {
            let changed = end_and_begin(connection, &ended, started.as_ref())?;
            // Both rows are in one commit. This transaction may have changed the first one, so the second one decides.
            let last = next.as_deref().zip(started.as_ref());
            if in_doubt
                && changed == 0
                && match last {
                    Some((next, row)) => is_as_written(connection, next, BatchStatus::Started, row.now)?,
                    None => is_as_written(connection, step, ending.status, now)?,
                }
            {
                return Ok(());
            }
            fenced_if_none(changed, ACTION)?;
            self.write_end_state(connection, step, state, data)?;
            if ends_lease {
                self.release_lease_in(connection, lease)?;
            }
            Ok(())
        };
        let is_one_statement = started.is_none() || Db::END_AND_BEGIN.is_some();
        match is_one_statement && state.is_none() && data.is_empty() && !ends_lease {
            true => self.pool.write_statement(ACTION, write)?,
            false => self.pool.write_idempotent(ACTION, write)?,
        }
        step.version += 1;
        step.status = ending.status;
        step.exit_status.clone_from(&ending.exit_status);
        step.exit_message = message;
        step.ended = Some(self.time(now));
        step.last_updated = self.time(now);
        if let Some((next, started)) = next.zip(started) {
            self.set_started(next, started.now);
        }
        Ok(())
    }

    fn write_end_state(
        &self,
        connection: &mut Connection,
        step: &StepExecution,
        state: Option<&StepState>,
        data: &DataChanges,
    ) -> Work<()> {
        if let Some(state) = state {
            let changed = update_context(connection, step.id, &state.encode(&self.settings.format))?;
            require_context(changed, step.id)?;
        }
        change_job_data(connection, step.job_execution_id, data)
    }

    fn set_started(&self, step: &mut StepExecution, now: DbTimestamp) {
        step.version += 1;
        step.status = BatchStatus::Started;
        step.started = self.time(now);
        step.last_updated = step.started;
    }
}

fn started_step(step: &StepExecution, now: DbTimestamp) -> StartedStep {
    StartedStep {
        id: step.id.0,
        version: step.version,
        now,
    }
}

/// Changes the status of an unchanged row to STARTED. Returns the number of changed rows.
fn make_started(connection: &mut Connection, started: &StartedStep) -> QueryResult<usize> {
    update(step_execution::table.filter(at_version(started.id, started.version)))
        .set((
            step_execution::version.eq(started.version + 1),
            step_execution::status.eq(BatchStatus::Started.as_str()),
            step_execution::start_time.eq(started.now),
            step_execution::last_updated.eq(started.now),
        ))
        .execute(connection)
}

/// Writes the end to an unchanged row. Returns the number of changed rows.
fn make_ended(connection: &mut Connection, ended: &EndedStep<'_>) -> QueryResult<usize> {
    update(step_execution::table.filter(at_version(ended.id, ended.version)))
        .set((
            step_execution::version.eq(ended.version + 1),
            step_execution::status.eq(ended.status),
            counter_columns!(ended.counters),
            step_execution::exit_code.eq(ended.exit_code),
            step_execution::exit_message.eq(ended.exit_message),
            step_execution::end_time.eq(ended.now),
            step_execution::last_updated.eq(ended.now),
        ))
        .execute(connection)
}

/// Writes the end, and the begin of another step execution if given. Returns 0 if one of the rows was changed before; then nothing of it may
/// be committed.
fn end_and_begin(
    connection: &mut Connection,
    ended: &EndedStep<'_>,
    started: Option<&StartedStep>,
) -> QueryResult<usize> {
    match (started, Db::END_AND_BEGIN) {
        (None, _) => make_ended(connection, ended),
        (Some(started), Some(by_one_statement)) => by_one_statement(connection, ended, started),
        (Some(started), None) => Ok(make_ended(connection, ended)?.min(make_started(connection, started)?)),
    }
}
