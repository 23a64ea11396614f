//! Step executions: their start, chunks and end.

use std::collections::BTreeSet;

use diesel::prelude::*;

use super::contexts::{insert_step_context, require_context, step_state_in};
use super::payloads::write_beside;
use super::rows::{CounterColumns, StepRow};
use super::schema::{job_execution, step_execution};
use super::step_bounds::{EndRows, is_as_written};
use super::{Connection, Db, Repository, Work, fenced, fenced_if_none, rejected};
use crate::execution::{StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::diesel::backend::{Backend, ChunkRows, NewStep, Sequence};
use crate::repository::diesel::chunk_transaction::Chunk;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::sequences::Sequences as _;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::rules::{self, StepRun};
use crate::repository::{
    ChunkCommit, ChunkTransaction, EndOfStep, Inserted, Lease, NewStepExecution, RepositoryError, Result,
    SideWrites, StepHistory, StepState, StepStore,
};
use crate::status::BatchStatus;

/// The action of `commit_chunk`, for errors.
const ACTION: &str = "record the checkpoint";

/// The columns of a step execution that is inserted into a table. The table of later layouts has one more.
macro_rules! new_step_columns {
    ($step:expr, $table:ident) => {{
        let step: &$crate::repository::diesel::backend::NewStep<'_> = $step;
        (
            $table::step_execution_id.eq(step.id),
            $table::version.eq($crate::repository::rules::new_step_version(step.status)),
            $table::step_name.eq(step.name),
            $table::job_execution_id.eq(step.job_execution),
            $table::start_time.eq(step.now),
            $table::status.eq(step.status.as_str()),
            counter_columns!($crate::execution::StepCounters::default(), $table),
            $table::exit_code.eq($crate::repository::rules::EXECUTING),
            $table::exit_message.eq(""),
            $table::last_updated.eq(step.now),
        )
    }};
}

pub(in crate::repository::diesel) use new_step_columns;

impl StepStore for Repository {
    fn step_history(
        &self,
        instance: JobInstanceId,
        step_name: &str,
        since: Option<i64>,
    ) -> Result<StepHistory> {
        self.run(Tx::read("read the step's history"), |connection, _| {
            history_in(connection, instance, step_name, since)
        })
    }

    fn insert_step(
        &self,
        lease: &Lease,
        new: &NewStepExecution<'_>,
        decide: &dyn Fn(&StepHistory) -> Option<StepState>,
    ) -> Result<Inserted> {
        const ACTION: &str = "record the step execution";
        let now = self.now();
        // What an attempt of unknown outcome has inserted, and the history before.
        let mut attempted: Option<(StepHistory, StepState)> = None;
        // A loss of power may undo the insert: nothing else of the step is recorded before a durable commit of
        // its own.
        self.run(Tx::write(ACTION).relaxed(), |connection, in_doubt| {
            if in_doubt {
                // Waits for the end of the earlier attempt.
                Db::lock_executions(connection, lease.instance_id.0)?;
                if let Some((before, state)) = &attempted
                    && let Some(inserted) = inserted_step(connection, lease.execution_id, new.name)?
                {
                    let inserted = inserted.into_execution(connection)?;
                    self.ensure_held(connection, lease, ACTION)?;
                    return Ok((before.clone(), Some((inserted, state.clone()))));
                }
            }
            // Before the lock, because only the lease holder inserts steps.
            let history = match new.is_first {
                true => StepHistory::default(),
                false => history_in(connection, lease.instance_id, new.name, new.since)?,
            };
            let Some(state) = decide(&history) else {
                return Ok((history, None));
            };
            // An insert has no VERSION to compare, so the lease itself is checked.
            // A process that closes the execution waits for this lock and finds the step, or has changed the
            // lease before.
            Db::share_execution(connection, lease.execution_id.0)?;
            self.ensure_held(connection, lease, ACTION)?;
            ensure_new(&history, lease)?;
            let id = Db::next_id(&self.pool, connection, Sequence::Step)?;
            let (name, status) = (new.name, new.status);
            let job_execution = lease.execution_id.0;
            Db::insert_steps(
                connection,
                &[NewStep {
                    id,
                    name,
                    job_execution,
                    status,
                    now,
                }],
            )?;
            insert_step_context(connection, id, &state.encode(&self.settings.format))?;
            let row = rules::new_step(id, lease.execution_id, name, status, self.time(now));
            // If the outcome of the commit stays unknown, the next attempt must return what this one has decided.
            attempted = Some((history.clone(), state.clone()));
            Ok((history, Some((row, state))))
        })
    }

    fn begin_step(&self, step: &mut StepExecution) -> Result<()> {
        self.record_begin(step)
    }

    fn create_partitions(&self, lease: &Lease, names: &[String]) -> Result<Vec<StepExecution>> {
        self.create_partition_rows(lease, names)
    }

    fn names_with_history(&self, instance: JobInstanceId, names: &[String]) -> Result<BTreeSet<String>> {
        self.names_of(instance, names)
    }

    fn steps(&self, ids: &[StepExecutionId]) -> Result<Vec<(StepExecution, StepState)>> {
        self.rows_of(ids)
    }

    fn latest_step(&self, execution: JobExecutionId) -> Result<Option<StepExecutionId>> {
        self.run(Tx::read("look for the latest step execution"), |connection, _| {
            let latest: Option<i64> = step_execution::table
                .filter(step_execution::job_execution_id.eq(execution.0))
                .select(diesel::dsl::max(step_execution::step_execution_id))
                .first(connection)?;
            Ok(latest.map(StepExecutionId))
        })
    }

    fn begin_chunk(&self) -> ChunkTransaction {
        Chunk::new(self.pool.clone()).into()
    }

    fn commit_chunk(
        &self,
        tx: &mut ChunkTransaction,
        step: &mut StepExecution,
        commit: ChunkCommit<'_>,
    ) -> Result<()> {
        let now = self.now();
        let tx = <&mut Chunk<Db>>::try_from(tx)?;
        // The end is written after the chunk, in the same transaction: it finds the VERSION that the chunk has
        // written.
        let of_end = |end| self.end_rows(step, step.version + 1, commit.counters, end);
        let rows = commit.end.as_ref().map(of_end);
        write_rows(tx, step, commit.counters, commit.state, now, |connection| {
            write_beside(connection, step.job_execution_id, commit.side_writes)?;
            // Without the lease nothing of the chunk is committed, not even the writer's rows. Its row is locked
            // after the rows of the step, as everywhere.
            match commit.renew {
                Some(lease) if !self.renew_lease_in(connection, lease)? => Err(fenced(ACTION)),
                _ => Ok(()),
            }?;
            match &rows {
                Some(rows) => fenced_if_none(rows.write(connection)?, ACTION),
                None => Ok(()),
            }
        })?;
        if let Err(error) = tx.commit() {
            // If only the connection was lost, the chunk may be committed: to process it again would double its
            // items.
            if !tx.is_in_doubt() {
                return Err(error);
            }
            tracing::warn!(%error, "the outcome of the commit is unknown; checking whether the checkpoint is stored");
            if !self.is_committed(step, now, rows.as_ref())? {
                return Err(error);
            }
        }
        // After the commit: the copy in memory must never be ahead of what survives a rollback.
        step.version += 1;
        step.counters = commit.counters;
        step.last_updated = self.time(now);
        if let Some((end, rows)) = commit.end.zip(rows) {
            self.apply_end(step, end, &rows);
        }
        Ok(())
    }

    fn end_step(
        &self,
        lease: &Lease,
        step: &mut StepExecution,
        end: EndOfStep<'_>,
        state: Option<&StepState>,
        side_writes: &SideWrites,
    ) -> Result<()> {
        self.record_end(lease, step, end, state, side_writes)
    }
}

impl Repository {
    /// Returns whether a commit of unknown outcome was carried out. If the server is still working on it, it holds the row, and
    /// this waits for it.
    fn is_committed(
        &self,
        step: &StepExecution,
        now: DbTimestamp,
        end: Option<&EndRows<'_>>,
    ) -> Result<bool> {
        self.run(
            Tx::write("check whether the checkpoint is stored"),
            |connection, _| {
                Db::lock_step(connection, step.id.0)?;
                Ok(match end {
                    Some(end) => end.are_written(connection)?,
                    None => is_as_written(connection, step.id.0, step.version, step.status.as_str(), now)?,
                })
            },
        )
    }
}

/// Fails if the job execution has an execution of the step.
fn ensure_new(history: &StepHistory, lease: &Lease) -> Work<()> {
    match &history.last {
        Some(last) if last.job_execution_id == lease.execution_id => {
            Err(rejected(rules::known_step(last.id, &last.step_name)))
        }
        _ => Ok(()),
    }
}

fn history_in(
    connection: &mut Connection,
    instance: JobInstanceId,
    name: &str,
    since: Option<i64>,
) -> Work<StepHistory> {
    let (last, all) = last_step(connection, instance, since, name)?;
    let runs: Vec<StepRun> = all.into_iter().map(HistoryRow::into_run).collect();
    let last = last.map(|last| last.into_execution(connection)).transpose()?;
    rules::step_history(last, &runs, since, |step| step_state_in(connection, step))
}

/// Returns the latest execution of a step in job executions from `since` on, and the counts of all its executions.
fn last_step(
    connection: &mut Connection,
    instance: JobInstanceId,
    since: Option<i64>,
    name: &str,
) -> QueryResult<(Option<StepRow>, Vec<HistoryRow>)> {
    let executions = job_execution::table
        .filter(job_execution::job_instance_id.eq(instance.0))
        .select(job_execution::job_execution_id);
    let of_instance = step_execution::step_name
        .eq(name)
        .and(step_execution::job_execution_id.eq_any(executions));
    let last = step_execution::table
        .filter(of_instance)
        .filter(step_execution::job_execution_id.ge(since.unwrap_or(i64::MIN)))
        .order(step_execution::step_execution_id.desc())
        .select(StepRow::as_select())
        .first(connection)
        .optional()?;
    let all = step_execution::table
        .filter(of_instance)
        .order(step_execution::step_execution_id)
        .select(HistoryRow::as_select())
        .load(connection)?;
    Ok((last, all))
}

/// What the history of a step needs of its executions.
#[derive(Queryable, Selectable)]
#[diesel(table_name = step_execution)]
struct HistoryRow {
    step_execution_id: i64,
    job_execution_id: i64,
    status: Option<String>,
    #[diesel(embed)]
    counters: CounterColumns,
}

impl HistoryRow {
    fn into_run(self) -> StepRun {
        StepRun {
            step: StepExecutionId(self.step_execution_id),
            job: JobExecutionId(self.job_execution_id),
            is_complete: self.status.as_deref() == Some(BatchStatus::Completed.as_str()),
            counters: self.counters.or_zero(),
        }
    }
}

/// Writes the rows of a chunk and runs `also`. In debug builds, the faults that the recovery tests must detect are injected here.
fn write_rows(
    tx: &mut Chunk<Db>,
    step: &StepExecution,
    counters: StepCounters,
    state: &StepState,
    now: DbTimestamp,
    also: impl FnOnce(&mut Connection) -> Work<()>,
) -> Result<()> {
    #[cfg(debug_assertions)]
    if crate::failpoints::is_on(crate::failpoints::Fault::SplitCommit) {
        tx.commit_data_only()?;
        // So that about every second kill strikes between the two commits.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let connection = tx.after_writer()?;
    let record = || {
        let version = step.version;
        #[cfg(debug_assertions)]
        let version = match crate::failpoints::is_on(crate::failpoints::Fault::NoFence) {
            true => step_execution::table
                .find(step.id.0)
                .select(step_execution::version)
                .first(connection)?,
            false => version,
        };
        let rows = ChunkRows {
            step: step.id,
            version,
            counters,
            context: &state.encode(&connection.settings().format),
            now,
        };
        let updated = Db::update_chunk_rows(connection, &rows)?;
        // Before the fence: without the writer's transaction the update matches no row, whatever its VERSION.
        if updated.has_ended {
            return Err(rejected(RepositoryError::TransactionEnded));
        }
        fenced_if_none(updated.steps, ACTION)?;
        require_context(updated.contexts, step.id)?;
        also(connection)
    };
    record().map_err(|error| error.into_error(ACTION))
}

/// Returns the step execution that an earlier attempt has inserted after all.
fn inserted_step(
    connection: &mut Connection,
    execution: JobExecutionId,
    name: &str,
) -> QueryResult<Option<StepRow>> {
    step_execution::table
        .filter(step_execution::job_execution_id.eq(execution.0))
        .filter(step_execution::step_name.eq(name))
        .select(StepRow::as_select())
        .first(connection)
        .optional()
}
