//! Step executions: their beginning, their checkpoints, their end.

use diesel::prelude::*;

use super::super::database::of_unknown_outcome;
use super::checkpoint::write_checkpoint;
use super::rows::{StepRow, stored_message};
use super::schema::{batch_step_execution, batch_step_execution_context};
use super::{
    Chunk, Connection, Database, Moment, Repository, RunQueryDsl, Sequence, TransactionError, hold_execution,
    lock_step, overtaken_by_a_double,
};
use crate::clock::Timestamp;
use crate::execution::{StepCounters, StepExecution};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::{ChunkTransaction, Ending, Lease, RepositoryError, StepState, StoredContext};
use crate::status::BatchStatus;

/// What committing an interval is called in errors.
const ACTION: &str = "record the checkpoint";

/// The counter columns, NULL nowhere.
macro_rules! counter_columns {
    ($counters:expr) => {{
        let counters: StepCounters = $counters;
        (
            batch_step_execution::read_count.eq(counters.reads),
            batch_step_execution::write_count.eq(counters.writes),
            batch_step_execution::filter_count.eq(counters.filters),
            batch_step_execution::commit_count.eq(counters.commits),
            batch_step_execution::rollback_count.eq(counters.rollbacks),
            batch_step_execution::read_skip_count.eq(counters.read_skips),
            batch_step_execution::process_skip_count.eq(counters.process_skips),
            batch_step_execution::write_skip_count.eq(counters.write_skips),
        )
    }};
}

pub(super) use counter_columns;

/// How many rows of a checkpoint there were to be written.
pub(super) struct Written {
    /// 0: VERSION was another one, and nothing is written.
    pub(super) steps: usize,
    pub(super) contexts: usize,
}

impl Repository {
    pub(super) fn insert_step(
        &self,
        lease: &Lease,
        name: &str,
        state: &StepState,
    ) -> Result<StepExecution, RepositoryError> {
        const ACTION: &str = "record the step execution";
        let now = self.now();
        self.pool.write_ahead(ACTION, |connection, in_doubt| {
            // An insert has no VERSION to compare, so the lease itself is looked at.
            hold_execution(connection, lease.execution_id.0)?;
            if !self.holds(connection, lease)? {
                return Err(TransactionError::Refused(RepositoryError::Fenced {
                    action: ACTION,
                }));
            }
            if in_doubt && let Some(inserted) = inserted_step(connection, lease.execution_id, name)? {
                return StepExecution::try_from(inserted).map_err(TransactionError::Refused);
            }
            let id = self.next_id(connection, Sequence::Step)?;
            diesel::insert_into(batch_step_execution::table)
                .values((
                    batch_step_execution::step_execution_id.eq(id),
                    batch_step_execution::version.eq(0),
                    batch_step_execution::step_name.eq(name),
                    batch_step_execution::job_execution_id.eq(lease.execution_id.0),
                    batch_step_execution::start_time.eq(Moment(now)),
                    batch_step_execution::status.eq(BatchStatus::Starting.as_str()),
                    counter_columns!(StepCounters::default()),
                    batch_step_execution::exit_code.eq("EXECUTING"),
                    batch_step_execution::exit_message.eq(""),
                    batch_step_execution::last_updated.eq(Moment(now)),
                ))
                .execute(connection)
                // By the try before, whose answer has not come.
                .map_err(overtaken_by_a_double)?;
            let context = state.encode();
            diesel::insert_into(batch_step_execution_context::table)
                .values((
                    batch_step_execution_context::step_execution_id.eq(id),
                    batch_step_execution_context::short_context.eq(context.short),
                    batch_step_execution_context::serialized_context.eq(context.serialized),
                ))
                .execute(connection)?;
            let row = batch_step_execution::table
                .find(id)
                .select(StepRow::as_select())
                .first(connection)?;
            StepExecution::try_from(row).map_err(TransactionError::Refused)
        })
    }

    /// Where several may come, each wants to be the one: then a change whose answer has not come is nobody's.
    pub(super) fn mark_step_started(
        &self,
        step: &mut StepExecution,
        is_contested: bool,
    ) -> Result<(), RepositoryError> {
        const ACTION: &str = "record the start of the step execution";
        let now = self.now().max(step.started.0);
        let started = BatchStatus::Started;
        self.pool.write_ahead(ACTION, |connection, in_doubt| {
            if in_doubt && is_contested {
                return Err(TransactionError::Database(of_unknown_outcome()));
            }
            let row = batch_step_execution::table
                .find(step.id.0)
                .filter(batch_step_execution::version.eq(step.version));
            let changed = diesel::update(row)
                .set((
                    batch_step_execution::version.eq(step.version + 1),
                    batch_step_execution::status.eq(started.as_str()),
                    batch_step_execution::start_time.eq(Moment(now)),
                    batch_step_execution::last_updated.eq(Moment(now)),
                ))
                .execute(connection)?;
            if in_doubt && changed == 0 && is_as_written(connection, step, started, now)? {
                return Ok(());
            }
            fenced_if_none(changed, ACTION)
        })?;
        step.version += 1;
        step.status = started;
        step.started = Timestamp(now);
        Ok(())
    }

    pub(super) fn commit_interval(
        &self,
        tx: &mut ChunkTransaction,
        step: &mut StepExecution,
        counters: StepCounters,
        state: &StepState,
        renew: Option<&Lease>,
    ) -> Result<(), RepositoryError> {
        let now = self.now();
        let tx = <&mut Chunk<Database>>::try_from(tx)?;
        record_checkpoint(tx, step, counters, state, now, |connection| match renew {
            Some(lease) if !self.extend_lease(connection, lease)? => {
                Err(TransactionError::Refused(RepositoryError::Fenced {
                    action: ACTION,
                }))
            }
            _ => Ok(()),
        })?;
        if let Err(error) = tx.commit() {
            if !tx.is_in_doubt() {
                return Err(error);
            }
            tracing::warn!(%error, "looking whether the checkpoint is there");
            if !self.is_committed(step, now)? {
                return Err(error);
            }
        }
        step.version += 1;
        step.counters = counters;
        step.last_updated = Timestamp(now);
        Ok(())
    }

    /// Whether the checkpoint was committed whose answer has not come. A transaction that is still alive over there holds the
    /// row, so that this waits for its fate.
    fn is_committed(&self, step: &StepExecution, now: i64) -> Result<bool, RepositoryError> {
        self.pool
            .write_surely("find out whether the checkpoint is there", |connection, _| {
                lock_step(connection, step.id.0)?;
                Ok(is_as_written(connection, step, step.status, now)?)
            })
    }

    pub(super) fn mark_step_ended(
        &self,
        step: &mut StepExecution,
        ending: &Ending,
        counters: StepCounters,
        state: Option<&StepState>,
    ) -> Result<(), RepositoryError> {
        const ACTION: &str = "record the end of the step execution";
        let now = self.now().max(step.started.0);
        let message = stored_message(&ending.message);
        self.pool.write_surely(ACTION, |connection, in_doubt| {
            let row = batch_step_execution::table
                .find(step.id.0)
                .filter(batch_step_execution::version.eq(step.version));
            let changed = diesel::update(row)
                .set((
                    batch_step_execution::version.eq(step.version + 1),
                    batch_step_execution::status.eq(ending.status.as_str()),
                    counter_columns!(counters),
                    batch_step_execution::exit_code.eq(&ending.exit_status),
                    batch_step_execution::exit_message.eq(&message),
                    batch_step_execution::end_time.eq(Moment(now)),
                    batch_step_execution::last_updated.eq(Moment(now)),
                ))
                .execute(connection)?;
            if in_doubt && changed == 0 && is_as_written(connection, step, ending.status, now)? {
                return Ok(());
            }
            fenced_if_none(changed, ACTION)?;
            if let Some(state) = state {
                let changed = update_context(connection, step.id, &state.encode())?;
                refuse_without_context(changed, step.id)?;
            }
            Ok(())
        })?;
        step.version += 1;
        step.status = ending.status;
        step.exit_status.clone_from(&ending.exit_status);
        step.exit_message = message;
        step.counters = counters;
        step.ended = Some(Timestamp(now));
        step.last_updated = Timestamp(now);
        Ok(())
    }

    /// The latest execution of a step in an instance, not looking at job executions before `since`; and how many there are
    /// in all.
    pub(super) fn last_step(
        connection: &mut Connection,
        executions: &[JobExecutionId],
        since: Option<i64>,
        name: &str,
    ) -> QueryResult<(Option<StepRow>, Vec<ReadRow>)> {
        let ids: Vec<i64> = executions.iter().map(|id| id.0).collect();
        let of_instance = batch_step_execution::step_name
            .eq(name)
            .and(batch_step_execution::job_execution_id.eq_any(ids));
        let last = batch_step_execution::table
            .filter(of_instance.clone())
            .filter(batch_step_execution::job_execution_id.ge(since.unwrap_or(i64::MIN)))
            .order(batch_step_execution::step_execution_id.desc())
            .select(StepRow::as_select())
            .first(connection)
            .optional()?;
        let all = batch_step_execution::table
            .filter(of_instance)
            .order(batch_step_execution::step_execution_id)
            .select((
                batch_step_execution::job_execution_id,
                batch_step_execution::status,
                batch_step_execution::read_count,
                batch_step_execution::read_skip_count,
            ))
            .load(connection)?;
        Ok((last, all))
    }
}

/// Of an execution of a step: its job execution, its status, what it has read, what it has skipped of that.
pub(super) type ReadRow = (i64, Option<String>, Option<i64>, Option<i64>);

/// How many items were read since the step was last complete.
pub(super) fn read_since_complete(all: &[ReadRow], since: Option<i64>) -> u64 {
    let counts = |(job, status, ..): &&ReadRow| {
        let is_complete = status.as_deref() == Some(BatchStatus::Completed.as_str());
        !is_complete && since.is_none_or(|since| *job >= since)
    };
    let read = all
        .iter()
        .rev()
        .take_while(counts)
        .map(|(_, _, reads, skips)| reads.unwrap_or(0) + skips.unwrap_or(0));
    u64::try_from(read.sum::<i64>()).unwrap_or(0)
}

/// The rows of a checkpoint, and `renew`. In a build with the feature `sabotage`, the fault that the recovery
/// tests must notice can be switched on here.
fn record_checkpoint(
    tx: &mut Chunk<Database>,
    step: &StepExecution,
    counters: StepCounters,
    state: &StepState,
    now: i64,
    renew: impl FnOnce(&mut Connection) -> Result<(), TransactionError<RepositoryError>>,
) -> Result<(), RepositoryError> {
    #[cfg(feature = "sabotage")]
    if crate::sabotage::is_on(crate::sabotage::Fault::SplitCommit) {
        tx.commit_data_only()?;
    }
    let connection = tx.after_the_writer()?;
    let record = || {
        let version = step.version;
        #[cfg(feature = "sabotage")]
        let version = match crate::sabotage::is_on(crate::sabotage::Fault::NoFence) {
            true => batch_step_execution::table
                .find(step.id.0)
                .select(batch_step_execution::version)
                .first(connection)?,
            false => version,
        };
        let written = write_checkpoint(
            connection,
            step.id,
            version,
            counters,
            &state.encode(),
            Moment(now),
        )?;
        fenced_if_none(written.steps, ACTION)?;
        refuse_without_context(written.contexts, step.id)?;
        renew(connection)
    };
    record().map_err(|error| error.into_error(ACTION))
}

/// Without the row the checkpoint would be lost in silence.
fn refuse_without_context(
    changed: usize,
    step: StepExecutionId,
) -> Result<(), TransactionError<RepositoryError>> {
    if changed == 1 {
        return Ok(());
    }
    Err(TransactionError::Refused(RepositoryError::Corrupt {
        row: format!("the context of step execution {step}"),
        problem: "has been deleted while the step was running".into(),
    }))
}

/// Returns how many rows there were.
pub(super) fn update_context(
    connection: &mut Connection,
    step: StepExecutionId,
    context: &StoredContext,
) -> QueryResult<usize> {
    diesel::update(batch_step_execution_context::table.find(step.0))
        .set((
            batch_step_execution_context::short_context.eq(&context.short),
            batch_step_execution_context::serialized_context.eq(&context.serialized),
        ))
        .execute(connection)
}

/// Whether a row is as this runner would have written it, had the answer come. Whoever closes what a runner leaves behind
/// writes another status.
fn is_as_written(
    connection: &mut Connection,
    before: &StepExecution,
    status: BatchStatus,
    now: i64,
) -> QueryResult<bool> {
    let row = batch_step_execution::table
        .find(before.id.0)
        .filter(batch_step_execution::version.eq(before.version + 1))
        .filter(batch_step_execution::status.eq(status.as_str()))
        .filter(batch_step_execution::last_updated.eq(Moment(now)));
    Ok(row.count().get_result::<i64>(connection)? == 1)
}

/// The step execution that has been inserted after all.
fn inserted_step(
    connection: &mut Connection,
    execution: JobExecutionId,
    name: &str,
) -> QueryResult<Option<StepRow>> {
    batch_step_execution::table
        .filter(batch_step_execution::job_execution_id.eq(execution.0))
        .filter(batch_step_execution::step_name.eq(name))
        .select(StepRow::as_select())
        .first(connection)
        .optional()
}

/// No row with the VERSION that this runner wrote last: the execution is somebody else's now. Spec: REPO-15
fn fenced_if_none(changed: usize, action: &'static str) -> Result<(), TransactionError<RepositoryError>> {
    if changed == 1 {
        Ok(())
    } else {
        Err(TransactionError::Refused(RepositoryError::Fenced { action }))
    }
}
