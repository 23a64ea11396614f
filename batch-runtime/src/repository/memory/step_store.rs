//! Step executions: their start, chunks and end.

use std::collections::BTreeSet;
use std::sync::MutexGuard;

use super::MemoryRepository;
use super::tables::fenced;
use super::tables::{Context, Step, Tables};
use crate::clock::Timestamp;
use crate::execution::StepExecution;
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::rules::{self, StepRun};
use crate::repository::{
    ChunkCommit, ChunkTransaction, DataChanges, EndOfStep, Ending, Inserted, Lease, MAX_VARCHAR,
    NewStepExecution, Result, SideWrites, StepHistory, StepState, StepStore,
};
use crate::status::BatchStatus;

impl StepStore for MemoryRepository {
    fn step_history(
        &self,
        instance: JobInstanceId,
        step_name: &str,
        since: Option<i64>,
    ) -> Result<StepHistory> {
        let tables = self.shared();
        let all = tables.executions_of(instance);
        let ids = all
            .filter_map(|execution| execution.by_name.get(step_name))
            .flatten();
        let rows: Vec<StepExecution> = ids.filter_map(|id| Some(tables.step(*id)?.row.clone())).collect();
        let run = |row: &StepExecution| StepRun {
            step: row.id,
            job: row.job_execution_id,
            is_complete: row.status == BatchStatus::Completed,
            counters: row.counters,
        };
        let runs: Vec<StepRun> = rows.iter().map(run).collect();
        let is_recent = |row: &StepExecution| since.is_none_or(|since| row.job_execution_id.0 >= since);
        let last = rows.into_iter().rev().find(is_recent);
        rules::step_history(last, &runs, since, |step| tables.step_state(step))
    }

    fn insert_step(
        &self,
        lease: &Lease,
        new: &NewStepExecution<'_>,
        decide: &dyn Fn(&StepHistory) -> Option<StepState>,
    ) -> Result<Inserted> {
        // Only the lease holder inserts steps.
        let history = match new.is_first {
            true => StepHistory::default(),
            false => self.step_history(lease.instance_id, new.name, new.since)?,
        };
        let Some(state) = decide(&history) else {
            return Ok((history, None));
        };
        let mut tables = self.alone();
        tables.ensure_held(lease, "record the step execution")?;
        ensure_new(&tables, lease, new.name)?;
        let row = rules::new_step(0, lease.execution_id, new.name, new.status, self.now());
        let id = tables.insert_step(row.clone(), Some(Context::State(as_stored(&state))));
        Ok((history, Some((StepExecution { id, ..row }, state))))
    }

    fn begin_step(&self, step: &mut StepExecution) -> Result<()> {
        const ACTION: &str = "record the start of the step execution";
        let tables = self.shared();
        let mut stored = tables.step_at(step, ACTION)?;
        rules::begin_step(step, self.now());
        write(&mut stored.row, step);
        Ok(())
    }

    fn create_partitions(&self, lease: &Lease, names: &[String]) -> Result<Vec<StepExecution>> {
        let mut tables = self.alone();
        tables.ensure_held(lease, "record partitions")?;
        for name in names {
            ensure_new(&tables, lease, name)?;
        }
        let now = self.now();
        let create = |name: &String| {
            let row = rules::new_step(0, lease.execution_id, name, BatchStatus::Starting, now);
            let id = tables.insert_step(row.clone(), Some(Context::State(StepState::default())));
            StepExecution { id, ..row }
        };
        Ok(names.iter().map(create).collect())
    }

    fn names_with_history(&self, instance: JobInstanceId, names: &[String]) -> Result<BTreeSet<String>> {
        let tables = self.shared();
        let all = tables.executions_of(instance);
        let is_known = |name: &&String| all.clone().any(|one| one.by_name.contains_key(*name));
        Ok(names.iter().filter(is_known).cloned().collect())
    }

    fn steps(&self, ids: &[StepExecutionId]) -> Result<Vec<(StepExecution, StepState)>> {
        let tables = self.shared();
        let ids: BTreeSet<StepExecutionId> = ids.iter().copied().collect();
        let found = ids.into_iter().filter_map(|id| tables.step(id));
        found.map(|step| Ok((step.row.clone(), step.state()?))).collect()
    }

    fn latest_step(&self, execution: JobExecutionId) -> Result<Option<StepExecutionId>> {
        let tables = self.shared();
        let execution = tables.executions.get(&execution);
        Ok(execution.and_then(|execution| execution.steps.last().copied()))
    }

    fn begin_chunk(&self) -> ChunkTransaction {
        ChunkTransaction::without_database()
    }

    fn commit_chunk(
        &self,
        _tx: &mut ChunkTransaction,
        step: &mut StepExecution,
        commit: ChunkCommit<'_>,
    ) -> Result<()> {
        const ACTION: &str = "record the checkpoint";
        let ChunkCommit {
            counters,
            state,
            side_writes,
            renew,
            end,
        } = commit;
        let (ending, next) = end.map(|end| (end.ending, end.next)).unzip();
        let next = next.flatten();
        // Checked before the data of the job changes, because nothing is rolled back here.
        if let Some(next) = &next {
            drop(self.shared().step_at(next, ACTION)?);
        }
        let now = self.now();
        self.change_data_of(step, &side_writes.data, renew, ACTION)?;
        let tables = self.shared();
        let mut stored = tables.step_at(step, ACTION)?;
        if let Some(lease) = renew {
            tables.ensure_held(lease, ACTION)?;
        }
        let waiting = next.as_deref().map(|next| tables.step_at(next, ACTION));
        let waiting = waiting.transpose()?;
        // The last call that can fail: all changes of rows follow it.
        overwrite(stored.state_mut()?, state);
        step.version += 1;
        step.counters = counters;
        step.last_updated = now;
        stored.row.version = step.version;
        stored.row.counters = counters;
        stored.row.last_updated = now;
        if let Some(ending) = ending {
            end_row(&mut stored.row, step, ending, next.zip(waiting), self.now());
        }
        Ok(())
    }

    fn end_step(
        &self,
        _lease: &Lease,
        step: &mut StepExecution,
        end: EndOfStep<'_>,
        state: Option<&StepState>,
        side_writes: &SideWrites,
    ) -> Result<()> {
        const ACTION: &str = "record the end of the step execution";
        let EndOfStep { ending, next } = end;
        // As in `commit_chunk`.
        if let Some(next) = &next {
            drop(self.shared().step_at(next, ACTION)?);
        }
        self.change_data_of(step, &side_writes.data, None, ACTION)?;
        let tables = self.shared();
        let mut stored = tables.step_at(step, ACTION)?;
        let waiting = next.as_deref().map(|next| tables.step_at(next, ACTION));
        let waiting = waiting.transpose()?;
        if let Some(state) = state {
            overwrite(stored.state_mut()?, state);
        }
        end_row(&mut stored.row, step, ending, next.zip(waiting), self.now());
        Ok(())
    }
}

impl MemoryRepository {
    /// Changes the data of a step's job, before the step itself, unless that will fail. Most commits change none, and share the tables.
    fn change_data_of(
        &self,
        step: &StepExecution,
        data: &DataChanges,
        renew: Option<&Lease>,
        action: &'static str,
    ) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let mut tables = self.alone();
        tables.step_at(step, action)?.state_mut()?;
        if let Some(lease) = renew {
            tables.ensure_held(lease, action)?;
        }
        tables.change_job_data(step.job_execution_id, data)
    }
}

/// Writes a row, whose state is in its context.
fn write(row: &mut StepExecution, step: &StepExecution) {
    *row = StepExecution {
        user_data: None,
        ..step.clone()
    };
}

/// Ends a step execution, and starts the next partition.
fn end_row(
    row: &mut StepExecution,
    step: &mut StepExecution,
    ending: &Ending,
    next: Option<(&mut StepExecution, MutexGuard<'_, Step>)>,
    now: Timestamp,
) {
    rules::end_step(step, ending, now, MAX_VARCHAR);
    write(row, step);
    if let Some((next, mut waiting)) = next {
        rules::begin_step(next, step.last_updated);
        write(&mut waiting.row, next);
    }
}

/// Fails if the job execution has an execution of this step.
fn ensure_new(tables: &Tables, lease: &Lease, name: &str) -> Result<()> {
    let execution = tables.executions.get(&lease.execution_id);
    let execution = execution.ok_or_else(|| fenced("record the step execution"))?;
    match execution.by_name.get(name).and_then(|ids| ids.first()) {
        Some(known) => Err(rules::known_step(*known, name)),
        None => Ok(()),
    }
}

/// Returns the state as it is read again: this runtime ran the step last.
fn as_stored(state: &StepState) -> StepState {
    StepState {
        of_other_program: false,
        ..state.clone()
    }
}

/// As `as_stored`, into the memory of the state that is replaced.
fn overwrite(stored: &mut StepState, state: &StepState) {
    stored.reader.clone_from(&state.reader);
    stored.writer.clone_from(&state.writer);
    stored.user_data.clone_from(&state.user_data);
    stored.skips.clone_from(&state.skips);
    stored.termination.clone_from(&state.termination);
    stored.other_entries.clone_from(&state.other_entries);
    stored.of_other_program = false;
}
