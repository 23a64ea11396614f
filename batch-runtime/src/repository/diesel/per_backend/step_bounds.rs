//! The begin and the end of step executions.

use diesel::prelude::*;

use super::contexts::{require_context, update_context};
use super::payloads::write_beside;
use super::schema::step_execution;
use super::{Connection, Db, Repository, Work, fenced_if_none};
use crate::execution::{StepCounters, StepExecution};
use crate::repository::diesel::backend::{Backend, EndedStep, StartedStep};
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::update::update;
use crate::repository::rules::{self, stored_message};
use crate::repository::{EndOfStep, Lease, Result, SideWrites, StepState};
use crate::status::BatchStatus;

const STARTED: &str = BatchStatus::Started.as_str();

/// The counter columns of a step execution; none is NULL.
macro_rules! counter_columns {
    ($counters:expr) => {
        counter_columns!($counters, step_execution)
    };
    ($counters:expr, $table:ident) => {{
        let counters: $crate::execution::StepCounters = $counters;
        (
            $table::read_count.eq(counters.reads),
            $table::write_count.eq(counters.writes),
            $table::filter_count.eq(counters.filters),
            $table::commit_count.eq(counters.commits),
            $table::rollback_count.eq(counters.rollbacks),
            $table::read_skip_count.eq(counters.read_skips),
            $table::process_skip_count.eq(counters.process_skips),
            $table::write_skip_count.eq(counters.write_skips),
        )
    }};
}

pub(in crate::repository::diesel) use counter_columns;

impl Repository {
    /// Implements `StepStore::begin_step`.
    pub(super) fn record_begin(&self, step: &mut StepExecution) -> Result<()> {
        const ACTION: &str = "record the start of the step execution";
        // The clock may have been set back since the row was inserted.
        let now = self.now().max(self.column(step.started));
        // A loss of power may undo the start: the step has committed nothing by then.
        self.run(Tx::statement(ACTION).relaxed(), |connection, in_doubt| {
            let changed = make_started(connection, &started_step(step, now))?;
            // The statement commits by itself: it may have been carried out before its connection was lost.
            if in_doubt && changed == 0 && is_as_written(connection, step.id.0, step.version, STARTED, now)? {
                return Ok(());
            }
            fenced_if_none(changed, ACTION)
        })?;
        self.set_started(step, now);
        Ok(())
    }

    /// Implements `StepStore::end_step`.
    pub(super) fn record_end(
        &self,
        lease: &Lease,
        step: &mut StepExecution,
        end: EndOfStep<'_>,
        state: Option<&StepState>,
        side_writes: &SideWrites,
    ) -> Result<()> {
        const ACTION: &str = "record the end of the step execution";
        let rows = self.end_rows(step, step.version, step.counters, &end);
        let ends_lease = lease.partition == Some(step.id);
        let write = |connection: &mut Connection, in_doubt: bool| {
            let changed = rows.write(connection)?;
            if in_doubt && changed == 0 && rows.are_written(connection)? {
                return Ok(());
            }
            fenced_if_none(changed, ACTION)?;
            self.write_end_state(connection, step, state, side_writes)?;
            // In the commit of the end: an open partition with a released lease counts as lost by its worker.
            if ends_lease {
                self.release_lease_in(connection, lease)?;
            }
            Ok(())
        };
        let is_one_statement = rows.started.is_none() || Db::END_AND_BEGIN.is_some();
        // One statement may commit by itself, in one round trip; several changes are committed together or not at
        // all.
        match is_one_statement && state.is_none() && side_writes.is_empty() && !ends_lease {
            true => self.run(Tx::statement(ACTION), write)?,
            false => self.run(Tx::write(ACTION), write)?,
        }
        self.apply_end(step, end, &rows);
        Ok(())
    }

    /// Returns the rows that an end changes. Before the end, the row of the step has `version` and `counters`.
    pub(super) fn end_rows<'a>(
        &self,
        step: &StepExecution,
        version: i64,
        counters: StepCounters,
        end: &EndOfStep<'a>,
    ) -> EndRows<'a> {
        let started = self.column(step.started);
        let now = rules::end_time(step.status, counters.commits, started, self.now());
        let start_of = |next: &StepExecution| started_step(next, now.max(self.column(next.started)));
        EndRows {
            ended: EndedStep {
                id: step.id.0,
                version,
                status: end.ending.status.as_str(),
                counters,
                exit_code: &end.ending.exit_status,
                exit_message: stored_message(&end.ending.message, self.settings.format.max_varchar),
                now,
            },
            started: end.next.as_deref().map(start_of),
        }
    }

    /// Applies an end that was committed.
    pub(super) fn apply_end(&self, step: &mut StepExecution, end: EndOfStep<'_>, rows: &EndRows<'_>) {
        let max_message = self.settings.format.max_varchar;
        rules::end_step(step, end.ending, self.time(rows.ended.now), max_message);
        if let Some((next, started)) = end.next.zip(rows.started.as_ref()) {
            self.set_started(next, started.now);
        }
    }

    fn write_end_state(
        &self,
        connection: &mut Connection,
        step: &StepExecution,
        state: Option<&StepState>,
        side_writes: &SideWrites,
    ) -> Work<()> {
        if let Some(state) = state {
            let changed = update_context(connection, step.id, &state.encode(&self.settings.format))?;
            require_context(changed, step.id)?;
        }
        write_beside(connection, step.job_execution_id, side_writes)
    }

    fn set_started(&self, step: &mut StepExecution, now: DbTimestamp) {
        rules::begin_step(step, self.time(now));
    }
}

pub(super) fn started_step(step: &StepExecution, now: DbTimestamp) -> StartedStep {
    StartedStep {
        id: step.id.0,
        version: step.version,
        now,
    }
}

/// Changes the status of an unchanged row to STARTED. Returns the number of changed rows.
pub(super) fn make_started(connection: &mut Connection, started: &StartedStep) -> QueryResult<usize> {
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
            step_execution::exit_message.eq(&ended.exit_message),
            step_execution::end_time.eq(ended.now),
            step_execution::last_updated.eq(ended.now),
        ))
        .execute(connection)
}

/// The rows that the end of a step execution changes.
pub(super) struct EndRows<'a> {
    ended: EndedStep<'a>,
    /// The partition that starts with it.
    started: Option<StartedStep>,
}

impl EndRows<'_> {
    /// Writes the rows. Returns 0 if one of them was changed before; then nothing of it may be committed.
    pub(super) fn write(&self, connection: &mut Connection) -> QueryResult<usize> {
        let ended = &self.ended;
        match (&self.started, Db::END_AND_BEGIN) {
            (None, _) => make_ended(connection, ended),
            (Some(started), Some(by_one_statement)) => by_one_statement(connection, ended, started),
            (Some(started), None) => {
                Ok(make_ended(connection, ended)?.min(make_started(connection, started)?))
            }
        }
    }

    /// Returns whether a transaction whose outcome is unknown has written them. They are in one commit: the transaction that asks may
    /// have changed the first row, so the second one decides.
    pub(super) fn are_written(&self, connection: &mut Connection) -> QueryResult<bool> {
        match &self.started {
            Some(started) => is_as_written(connection, started.id, started.version, STARTED, started.now),
            None => {
                let ended = &self.ended;
                is_as_written(connection, ended.id, ended.version, ended.status, ended.now)
            }
        }
    }
}

/// Returns the condition for the row of `step` at its current version.
#[diesel::dsl::auto_type]
pub(super) fn at_version(id: i64, version: i64) -> _ {
    step_execution::step_execution_id
        .eq(id)
        .and(step_execution::version.eq(version))
}

/// Returns whether the row of a step execution, which had `version`, is as this runner has written it in a transaction whose outcome is
/// unknown. A process that closes the execution of a dead runner writes another status.
pub(super) fn is_as_written(
    connection: &mut Connection,
    id: i64,
    version: i64,
    status: &str,
    now: DbTimestamp,
) -> QueryResult<bool> {
    let row = step_execution::table
        .find(id)
        .filter(step_execution::version.eq(version + 1))
        .filter(step_execution::status.eq(status))
        .filter(step_execution::last_updated.eq(now));
    Ok(row.count().get_result::<i64>(connection)? == 1)
}
