//! The turns of jobs whose executions run one at a time. A unique key lets one execution have the turn.
// Spec: TURN-01 to TURN-03

use std::collections::BTreeMap;

use diesel::prelude::*;

use super::claim::{ClaimWork, progress_of};
use super::closing::OPEN;
use super::lease::{Crashes, lease_of};
use super::schema::{job_execution, turn};
use super::{Connection, Db, Repository, Work};
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::pool::{Tx, ensure_known};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::{
    TransactionError, concurrent_change, on_unique_violation,
};
use crate::repository::diesel::update::update;
use crate::repository::rules::{self, Turn};
use crate::repository::{ClaimError, Concurrency, Lease, Result, TurnOutcome};

/// IS_TAKEN of the execution that has the turn.
const TAKEN: Option<i16> = Some(1);

impl Repository {
    /// Gives a new execution the turn of its job, or queues it.
    pub(super) fn enter_turn(
        &self,
        connection: &mut Connection,
        job_name: &str,
        execution: i64,
        concurrency: Concurrency,
    ) -> ClaimWork<()> {
        let is_taken = match concurrency {
            Concurrency::Any => return Ok(()),
            Concurrency::Queue => None,
            Concurrency::One => {
                let turns = turns_of(connection, job_name)?;
                // The open executions of the same instance are closed.
                if let Some(execution) = rules::turn_of_other(&turns, None) {
                    return Err(TransactionError::Rejected(ClaimError::NotItsTurn { execution }));
                }
                // The unique key allows one turn that is taken, and the one of an execution that has ended is
                // still there.
                forget_ended(connection, &turns)?;
                TAKEN
            }
        };
        insert(connection, job_name, execution, is_taken)
    }

    /// Implements `JobStore::take_turn`.
    pub(super) fn take_turn_of_job(&self, lease: &Lease, job_name: &str) -> Result<TurnOutcome> {
        let own = lease.execution_id;
        let waits_for = |connection: &mut Connection, _| -> Work<(Vec<Turn>, Option<JobExecutionId>)> {
            let turns = turns_of(connection, job_name)?;
            let waits_for = self.before(connection, &turns, own)?;
            Ok((turns, waits_for))
        };
        // Most calls find the turn taken, and write nothing.
        let (_, before) = self.run(Tx::read("look for the turn of the job"), &waits_for)?;
        if before.is_some() {
            return Ok(TurnOutcome::waits_for(before));
        }
        self.run(Tx::write("take the turn of the job"), |connection, _| {
            // Again, in the transaction that writes: another execution may have taken the turn since.
            let (turns, before) = waits_for(connection, false)?;
            if before.is_some() {
                return Ok(TurnOutcome::waits_for(before));
            }
            let mut closed = Vec::new();
            for dead in turns.iter().filter(|turn| turn.is_taken && turn.execution != own) {
                closed.extend(self.close_dead(connection, dead)?);
                forget(connection, dead.execution)?;
            }
            forget_ended(connection, &turns)?;
            let taken = update(turn::table.find(own.0))
                .set(turn::is_taken.eq(TAKEN))
                .execute(connection)
                .map_err(on_unique_violation)?;
            if taken == 0 {
                // Another execution has taken this one for dead.
                insert(connection, job_name, own.0, TAKEN)?;
            }
            Ok(TurnOutcome {
                waits_for: None,
                closed,
            })
        })
    }

    /// Implements `JobStore::pass_turn`.
    pub(super) fn pass_turn_of(&self, execution: JobExecutionId) -> Result<Option<Vec<JobExecutionId>>> {
        self.run(Tx::write("pass the turn of the job"), |connection, in_doubt| {
            // The earlier attempt may have closed the execution, and what it has closed could not be returned.
            ensure_known(in_doubt)?;
            let Some(dead) = turn_of(connection, execution)? else {
                return Ok(Some(Vec::new()));
            };
            if self.is_alive(connection, &dead)? {
                return Ok(None);
            }
            let closed = self.close_dead(connection, &dead)?;
            forget(connection, dead.execution)?;
            Ok(Some(closed))
        })
    }

    /// Implements `OperatorStore::waits_for`.
    pub(super) fn turn_before(&self, execution: JobExecutionId) -> Result<Option<JobExecutionId>> {
        self.run(Tx::read("look for the turn of the job"), |connection, _| {
            let job_name: Option<String> = turn::table
                .find(execution.0)
                .select(turn::job_name)
                .first(connection)
                .optional()?;
            let Some(job_name) = job_name else {
                return Ok(None);
            };
            let turns = turns_of(connection, &job_name)?;
            let is_open = |turn: &Turn| turn.execution == execution && turn.open_instance.is_some();
            match turns.iter().any(is_open) {
                true => self.before(connection, &turns, execution),
                false => Ok(None),
            }
        })
    }

    fn before(
        &self,
        connection: &mut Connection,
        turns: &[Turn],
        own: JobExecutionId,
    ) -> Work<Option<JobExecutionId>> {
        rules::turn_before(turns, own, |turn| self.is_alive(connection, turn))
    }

    /// Returns whether an execution has not ended and its owner may be alive.
    fn is_alive(&self, connection: &mut Connection, turn: &Turn) -> Work<bool> {
        let Some(JobInstanceId(instance)) = turn.open_instance else {
            return Ok(false);
        };
        match lease_of(connection, instance)? {
            Some(row) if row.job_execution_id == turn.execution.0 => {
                Ok(self.is_held(connection, instance, &row)?)
            }
            _ => Ok(false),
        }
    }

    /// Closes an execution whose owner is dead. Should the owner only be suspended, the repository rejects what it writes. Counts the
    /// crash as a claim of the instance does.
    fn close_dead(&self, connection: &mut Connection, dead: &Turn) -> Work<Vec<JobExecutionId>> {
        let Some(JobInstanceId(instance)) = dead.open_instance else {
            return Ok(Vec::new());
        };
        // The owner may have renewed its lease, or the instance been deleted, before the lock was granted.
        if !Db::lock_instance(connection, instance)? || self.is_alive(connection, dead)? {
            return Err(concurrent_change());
        }
        let lease = lease_of(connection, instance)?;
        let Some(row) = lease
            .as_ref()
            .filter(|row| row.job_execution_id == dead.execution.0)
        else {
            return Ok(Vec::new());
        };
        let progress = progress_of(connection, instance)?;
        let closed = self.close_open_executions(connection, instance, lease.as_ref(), None)?;
        self.notify_of_closed(connection, &closed)?;
        if !row.is_free() {
            let in_a_row = row.crashes(progress);
            Self::void_lease(connection, instance, row, Some(Crashes { in_a_row, progress }))?;
        }
        Ok(closed)
    }
}

type Row = (i64, Option<i16>, Option<i64>, Option<String>);

/// Selects the turns as `Row`s.
macro_rules! turns {
    () => {
        turn::table.left_join(job_execution::table).select((
            turn::job_execution_id,
            turn::is_taken,
            job_execution::job_instance_id.nullable(),
            job_execution::status.nullable(),
        ))
    };
}

/// Returns the turns of a job, in the order of their executions.
fn turns_of(connection: &mut Connection, job_name: &str) -> QueryResult<Vec<Turn>> {
    let query = turns!()
        .filter(turn::job_name.eq(job_name))
        .order(turn::job_execution_id.asc());
    let rows: Vec<Row> = query.load(connection)?;
    Ok(rows.into_iter().map(turn).collect())
}

/// Returns the executions that wait, each with the one that has the turn of its job, else the first that waits. Unlike
/// [`Repository::turn_before`] it does not check whether that one is alive.
pub(super) fn waiting_in(
    connection: &mut Connection,
) -> QueryResult<BTreeMap<JobExecutionId, JobExecutionId>> {
    let query = turn::table
        .inner_join(job_execution::table)
        .filter(job_execution::status.eq_any(OPEN))
        .order(turn::job_execution_id.asc())
        .select((turn::job_name, turn::job_execution_id, turn::is_taken));
    let rows: Vec<(String, i64, Option<i16>)> = query.load(connection)?;
    let open =
        |(job, id, is_taken): (String, i64, Option<i16>)| (job, JobExecutionId(id), is_taken.is_some());
    let open: Vec<_> = rows.into_iter().map(open).collect();
    Ok(rules::waiting(&open))
}

fn turn_of(connection: &mut Connection, execution: JobExecutionId) -> QueryResult<Option<Turn>> {
    let query = turns!().filter(turn::job_execution_id.eq(execution.0));
    let row: Option<Row> = query.first(connection).optional()?;
    Ok(row.map(turn))
}

fn turn(row: Row) -> Turn {
    let (execution, is_taken, instance, status) = row;
    let is_open = |status: &String| OPEN.contains(&status.as_str());
    Turn {
        execution: JobExecutionId(execution),
        is_taken: is_taken.is_some(),
        open_instance: instance
            .filter(|_| status.as_ref().is_some_and(is_open))
            .map(JobInstanceId),
    }
}

fn insert<E>(
    connection: &mut Connection,
    job_name: &str,
    execution: i64,
    is_taken: Option<i16>,
) -> Result<(), TransactionError<E>> {
    diesel::insert_into(turn::table)
        .values((
            turn::job_execution_id.eq(execution),
            turn::job_name.eq(job_name),
            turn::is_taken.eq(is_taken),
        ))
        .execute(connection)
        // Two executions may find the turn free at the same moment: the unique key rejects the second, which then
        // waits.
        .map_err(on_unique_violation)?;
    Ok(())
}

fn forget(connection: &mut Connection, execution: JobExecutionId) -> QueryResult<usize> {
    diesel::delete(turn::table.find(execution.0)).execute(connection)
}

/// Deletes the turns of executions that have ended.
fn forget_ended(connection: &mut Connection, turns: &[Turn]) -> QueryResult<()> {
    let ended = turns.iter().filter(|turn| turn.open_instance.is_none());
    for ended in ended {
        forget(connection, ended.execution)?;
    }
    Ok(())
}
