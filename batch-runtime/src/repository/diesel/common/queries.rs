//! Queries, and the repository's trait put together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use diesel::prelude::*;

use super::lease::lease_of;
use super::rows::{ExecutionRow, InstanceRow, StepRow, load_parameters};
use super::schema::{
    batch_job_execution, batch_job_execution_context, batch_job_instance, batch_step_execution,
    batch_step_execution_context,
};
use super::steps::read_since_complete;
use super::{Chunk, Connection, Moment, Repository, RunQueryDsl, TransactionError, hold_execution};
use crate::execution::{JobExecution, JobInstance, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::{
    AbandonOutcome, ArchivedInstance, ChunkTransaction, Claim, ClaimError, ClaimRequest, Connector,
    DeathOutcome, ElementState, Ending, ExecutionFilter, InstanceState, JobRepository, JobState, Lease,
    RepositoryError, RestartPosition, Signal, StepHistory, StepState, StopOutcome, StoredContext,
};
use crate::status::BatchStatus;

type ReadResult<T, E = RepositoryError> = Result<T, TransactionError<E>>;

fn refused<E: From<RepositoryError>>(error: RepositoryError) -> TransactionError<E> {
    TransactionError::Refused(error.into())
}

/// Executions with their job's name.
macro_rules! executions {
    () => {
        batch_job_execution::table
            .inner_join(batch_job_instance::table)
            .select((ExecutionRow::as_select(), batch_job_instance::job_name))
            .order(batch_job_execution::job_execution_id.desc())
    };
}

fn into_executions(rows: Vec<(ExecutionRow, String)>) -> Result<Vec<JobExecution>, RepositoryError> {
    rows.into_iter()
        .map(|(row, job_name)| row.into_execution(job_name))
        .collect()
}

pub(super) fn execution_in<E: From<RepositoryError>>(
    connection: &mut Connection,
    id: i64,
) -> ReadResult<Option<JobExecution>, E> {
    let row: Option<(ExecutionRow, String)> = executions!()
        .filter(batch_job_execution::job_execution_id.eq(id))
        .first(connection)
        .optional()?;
    row.map(|(row, job_name)| row.into_execution(job_name))
        .transpose()
        .map_err(refused)
}

pub(super) fn instance_in(connection: &mut Connection, id: i64) -> QueryResult<Option<JobInstance>> {
    let row = batch_job_instance::table
        .find(id)
        .select(InstanceRow::as_select())
        .first(connection)
        .optional()?;
    Ok(row.map(JobInstance::from))
}

/// The execution of an instance that was begun last.
pub(super) fn last_execution<E: From<RepositoryError>>(
    connection: &mut Connection,
    instance: i64,
) -> ReadResult<Option<JobExecution>, E> {
    let row: Option<(ExecutionRow, String)> = executions!()
        .filter(batch_job_execution::job_instance_id.eq(instance))
        .first(connection)
        .optional()?;
    row.map(|(row, job_name)| row.into_execution(job_name))
        .transpose()
        .map_err(refused)
}

fn state_in(connection: &mut Connection, step: StepExecutionId) -> ReadResult<StepState> {
    let row: Option<(String, Option<String>)> = batch_step_execution_context::table
        .find(step.0)
        .select((
            batch_step_execution_context::short_context,
            batch_step_execution_context::serialized_context,
        ))
        .first(connection)
        .optional()?;
    // A context row that was deleted means that the step starts without checkpoint. Spec: RESTART-17
    let Some((short, serialized)) = row else {
        return Ok(StepState::default());
    };
    StepState::decode(&serialized.unwrap_or(short)).map_err(|problem| {
        refused(RepositoryError::Corrupt {
            row: format!("the context of step execution {step}"),
            problem,
        })
    })
}

/// Whether one of the latest executions of a step, which were another program's, has committed something.
fn has_committed_elsewhere(
    connection: &mut Connection,
    executions: &[JobExecutionId],
    step_name: &str,
) -> ReadResult<bool> {
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
        if !state_in(connection, StepExecutionId(step))?.is_of_another {
            return Ok(false);
        }
        if commits > Some(0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a job execution has kept in its context; nothing if the row was deleted.
pub(super) fn job_state_in(connection: &mut Connection, execution: i64) -> ReadResult<JobState> {
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
        refused(RepositoryError::Corrupt {
            row: format!("the context of job execution {execution}"),
            problem,
        })
    })
}

/// The context of an execution that comes after another one: what other programs have put there is handed on, as they do.
/// One that cannot be read is told of when its own entries are looked for.
pub(super) fn context_after(connection: &mut Connection, execution: i64) -> QueryResult<StoredContext> {
    match job_state_in(connection, execution) {
        Ok(state) => Ok(state.for_next()),
        Err(TransactionError::Database(error)) => Err(error),
        Err(_) => Ok(JobState::default().for_next()),
    }
}

/// Writes the context of a job execution.
pub(super) fn keep_job_state(
    connection: &mut Connection,
    execution: JobExecutionId,
    state: &JobState,
) -> ReadResult<()> {
    let context = state.encode().map_err(|error| {
        refused(RepositoryError::Corrupt {
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
    // Without the row a rollback that is owed would be forgotten.
    Err(refused(RepositoryError::Corrupt {
        row: format!("the context of job execution {execution}"),
        problem: "has been deleted while the job was running".into(),
    }))
}

fn execution_ids(connection: &mut Connection, instance: JobInstanceId) -> QueryResult<Vec<JobExecutionId>> {
    let ids: Vec<i64> = batch_job_execution::table
        .filter(batch_job_execution::job_instance_id.eq(instance.0))
        .select(batch_job_execution::job_execution_id)
        .order(batch_job_execution::job_execution_id.asc())
        .load(connection)?;
    Ok(ids.into_iter().map(JobExecutionId).collect())
}

impl JobRepository for Repository {
    fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        self.claim_execution(request)
    }

    fn begin_job(&self, lease: &Lease, execution: &mut JobExecution) -> Result<bool, RepositoryError> {
        self.mark_started(lease, execution)
    }

    fn end_job(
        &self,
        lease: &Lease,
        execution: &mut JobExecution,
        ending: &Ending,
    ) -> Result<bool, RepositoryError> {
        self.mark_ended(lease, execution, ending)
    }

    fn restart_position(&self, execution: &JobExecution) -> Result<Option<RestartPosition>, RepositoryError> {
        self.pool.read("read where the job begins", |connection| {
            let before: Option<(i64, Option<String>)> = batch_job_execution::table
                .filter(batch_job_execution::job_instance_id.eq(execution.instance_id.0))
                .filter(batch_job_execution::job_execution_id.lt(execution.id.0))
                .order(batch_job_execution::job_execution_id.desc())
                .select((batch_job_execution::job_execution_id, batch_job_execution::status))
                .first(connection)
                .optional()?;
            let Some((before, _)) =
                before.filter(|(_, status)| status.as_deref() == Some(BatchStatus::Stopped.as_str()))
            else {
                return Ok(None);
            };
            Ok(job_state_in(connection, before)?.restart)
        })
    }

    fn element_states(
        &self,
        instance: JobInstanceId,
    ) -> Result<BTreeMap<String, ElementState>, RepositoryError> {
        self.pool
            .read("read the state of parallel elements", |connection| {
                let mut states = BTreeMap::new();
                for execution in execution_ids(connection, instance)? {
                    states.extend(job_state_in(connection, execution.0)?.elements);
                }
                Ok(states)
            })
    }

    fn keep_element_states(
        &self,
        lease: &Lease,
        states: &BTreeMap<String, ElementState>,
    ) -> Result<(), RepositoryError> {
        const ACTION: &str = "record the state of parallel elements";
        self.pool.write_surely(ACTION, |connection, _| {
            // The row has no VERSION to compare, so the lease itself is looked at.
            hold_execution(connection, lease.execution_id.0)?;
            if !self.holds(connection, lease)? {
                return Err(refused(RepositoryError::Fenced { action: ACTION }));
            }
            let state = JobState {
                restart: None,
                elements: states.clone(),
                ..job_state_in(connection, lease.execution_id.0)?
            };
            keep_job_state(connection, lease.execution_id, &state)
        })
    }

    fn step_history(
        &self,
        instance: JobInstanceId,
        step_name: &str,
        since: Option<i64>,
    ) -> Result<StepHistory, RepositoryError> {
        self.pool.read("read the step's history", |connection| {
            let executions = execution_ids(connection, instance)?;
            let (last, all) = Self::last_step(connection, &executions, since, step_name)?;
            let starts = u32::try_from(all.len()).unwrap_or(u32::MAX);
            let Some(last) = last else {
                return Ok(StepHistory {
                    starts,
                    ..StepHistory::default()
                });
            };
            let last = StepExecution::try_from(last).map_err(refused)?;
            let state = state_in(connection, last.id)?;
            let committed_elsewhere =
                state.is_of_another && has_committed_elsewhere(connection, &executions, step_name)?;
            Ok(StepHistory {
                last: Some(last),
                items: state
                    .reader
                    .as_ref()
                    .map_or(0, |_| read_since_complete(&all, since)),
                state,
                committed_elsewhere,
                starts,
            })
        })
    }

    fn create_step(
        &self,
        lease: &Lease,
        name: &str,
        state: &StepState,
    ) -> Result<StepExecution, RepositoryError> {
        self.insert_step(lease, name, state)
    }

    fn begin_step(&self, step: &mut StepExecution) -> Result<(), RepositoryError> {
        self.mark_step_started(step, false)
    }

    fn claim_step(&self, id: StepExecutionId) -> Result<Option<(StepExecution, StepState)>, RepositoryError> {
        let Some((mut step, state)) = self.step(id)? else {
            return Ok(None);
        };
        if step.status != BatchStatus::Starting {
            return Ok(None);
        }
        match self.mark_step_started(&mut step, true) {
            Ok(()) => Ok(Some((step, state))),
            Err(RepositoryError::Fenced { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn step(&self, id: StepExecutionId) -> Result<Option<(StepExecution, StepState)>, RepositoryError> {
        self.pool.read("read the step execution", |connection| {
            let row = batch_step_execution::table
                .find(id.0)
                .select(StepRow::as_select())
                .first(connection)
                .optional()?;
            let Some(row) = row else { return Ok(None) };
            let step = StepExecution::try_from(row).map_err(refused)?;
            let state = state_in(connection, id)?;
            Ok(Some((step, state)))
        })
    }

    fn begin_chunk(&self) -> ChunkTransaction {
        Chunk::new(self.pool.clone()).into()
    }

    fn commit_chunk(
        &self,
        tx: &mut ChunkTransaction,
        step: &mut StepExecution,
        counters: StepCounters,
        state: &StepState,
        renew: Option<&Lease>,
    ) -> Result<(), RepositoryError> {
        self.commit_interval(tx, step, counters, state, renew)
    }

    fn end_step(
        &self,
        step: &mut StepExecution,
        ending: &Ending,
        counters: StepCounters,
        state: Option<&StepState>,
    ) -> Result<(), RepositoryError> {
        self.mark_step_ended(step, ending, counters, state)
    }

    fn renew(&self, lease: &Lease) -> Result<bool, RepositoryError> {
        self.renew_lease(lease)
    }

    fn give_up(&self, lease: &Lease) -> Result<(), RepositoryError> {
        self.pool.write_surely("give the lease back", |connection, _| {
            self.release_lease(connection, lease)?;
            Ok(())
        })
    }

    fn is_running(&self, execution: JobExecutionId) -> Result<bool, RepositoryError> {
        self.pool.read("look for the owner", |connection| {
            let Some(execution) = execution_in(connection, execution.0)? else {
                return Ok(false);
            };
            if execution.status.is_final() {
                return Ok(false);
            }
            match lease_of(connection, execution.instance_id.0)? {
                Some(row) if row.job_execution_id == execution.id.0 => Ok(self.is_held(connection, &row)?),
                // Another program's, which keeps no lease.
                _ => Ok(true),
            }
        })
    }

    fn lease_time(&self) -> Duration {
        self.lease_time
    }

    fn signals(&self, executions: &[JobExecutionId]) -> Result<Vec<Signal>, RepositoryError> {
        self.pool.read_at_once("look for stop requests", |connection| {
            let ids = executions.iter().map(|id| id.0);
            let rows: Vec<(i64, Option<String>)> = batch_job_execution::table
                .filter(batch_job_execution::job_execution_id.eq_any(ids))
                .select((batch_job_execution::job_execution_id, batch_job_execution::status))
                .load(connection)?;
            let stopping = BatchStatus::Stopping.as_str();
            let signal = |(id, status): (i64, Option<String>)| Signal {
                execution_id: JobExecutionId(id),
                stop_requested: status.as_deref() == Some(stopping),
            };
            Ok(rows.into_iter().map(signal).collect())
        })
    }

    fn request_stop(&self, execution: JobExecutionId) -> Result<Option<StopOutcome>, RepositoryError> {
        self.ask_to_stop(execution)
    }

    fn instance_states(
        &self,
        job: Option<&str>,
        after: JobInstanceId,
        count: u32,
    ) -> Result<Vec<InstanceState>, RepositoryError> {
        self.states_of(job, after, count)
    }

    fn delete_instances(&self, seen: &[InstanceState]) -> Result<u64, RepositoryError> {
        self.remove_instances(seen)
    }

    fn archived(&self, instance: JobInstanceId) -> Result<Option<ArchivedInstance>, RepositoryError> {
        self.archived_instance(instance)
    }

    fn restore(&self, archived: &ArchivedInstance) -> Result<Option<JobInstanceId>, RepositoryError> {
        self.restore_instance(archived)
    }

    fn abandon(&self, execution: JobExecutionId) -> Result<Option<AbandonOutcome>, RepositoryError> {
        self.give_up_execution(execution)
    }

    fn declare_dead(&self, execution: JobExecutionId) -> Result<Option<DeathOutcome>, RepositoryError> {
        self.close_dead(execution)
    }

    fn find_executions(&self, filter: &ExecutionFilter) -> Result<Vec<JobExecution>, RepositoryError> {
        self.pool.read("look for job executions", |connection| {
            let mut query = executions!().into_boxed();
            if let Some(job) = &filter.job {
                query = query.filter(batch_job_instance::job_name.eq(job));
            }
            if !filter.statuses.is_empty() {
                let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
                query = query.filter(batch_job_execution::status.eq_any(statuses));
            }
            if let Some(since) = filter.since {
                query = query.filter(batch_job_execution::create_time.ge(Moment(since.0)));
            }
            if let Some(until) = filter.until {
                query = query.filter(batch_job_execution::create_time.lt(Moment(until.0)));
            }
            if let Some(limit) = filter.limit {
                query = query.limit(limit.into());
            }
            into_executions(query.load(connection)?).map_err(refused)
        })
    }

    fn connector(&self) -> Connector {
        self.pool.connector()
    }

    fn find_instance(&self, job_name: &str, job_key: &str) -> Result<Option<JobInstance>, RepositoryError> {
        self.pool.read("look for the job instance", |connection| {
            let row = batch_job_instance::table
                .filter(batch_job_instance::job_name.eq(job_name))
                .filter(batch_job_instance::job_key.eq(job_key))
                .select(InstanceRow::as_select())
                .first(connection)
                .optional()?;
            Ok(row.map(JobInstance::from))
        })
    }

    fn instance(&self, id: JobInstanceId) -> Result<Option<JobInstance>, RepositoryError> {
        self.pool.read("read the job instance", |connection| {
            Ok(instance_in(connection, id.0)?)
        })
    }

    fn instances(&self, job_name: &str, start: i64, count: i64) -> Result<Vec<JobInstance>, RepositoryError> {
        self.pool.read("list the job instances", |connection| {
            let rows = batch_job_instance::table
                .filter(batch_job_instance::job_name.eq(job_name))
                .order(batch_job_instance::job_instance_id.desc())
                .offset(start)
                .limit(count)
                .select(InstanceRow::as_select())
                .load(connection)?;
            Ok(rows.into_iter().map(JobInstance::from).collect())
        })
    }

    fn instance_count(&self, job_name: &str) -> Result<i64, RepositoryError> {
        self.pool.read("count the job instances", |connection| {
            let of_job = batch_job_instance::table.filter(batch_job_instance::job_name.eq(job_name));
            Ok(of_job.count().get_result(connection)?)
        })
    }

    fn job_names(&self) -> Result<BTreeSet<String>, RepositoryError> {
        self.pool.read("list the job names", |connection| {
            let names: Vec<String> = batch_job_instance::table
                .select(batch_job_instance::job_name)
                .distinct()
                .load(connection)?;
            Ok(names.into_iter().collect())
        })
    }

    fn execution(&self, id: JobExecutionId) -> Result<Option<JobExecution>, RepositoryError> {
        self.pool.read("read the job execution", |connection| {
            execution_in(connection, id.0)
        })
    }

    fn executions(&self, instance: JobInstanceId) -> Result<Vec<JobExecution>, RepositoryError> {
        self.pool.read("list the job executions", |connection| {
            let of_instance = executions!().filter(batch_job_execution::job_instance_id.eq(instance.0));
            into_executions(of_instance.load(connection)?).map_err(refused)
        })
    }

    fn running(&self, job_name: &str) -> Result<Vec<JobExecution>, RepositoryError> {
        let open =
            [BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping].map(BatchStatus::as_str);
        self.pool.read("list the running job executions", |connection| {
            let running = executions!()
                .filter(batch_job_instance::job_name.eq(job_name))
                .filter(batch_job_execution::status.eq_any(open));
            into_executions(running.load(connection)?).map_err(refused)
        })
    }

    fn parameters(&self, id: JobExecutionId) -> Result<JobParameters, RepositoryError> {
        self.pool.read("read the job parameters", |connection| {
            load_parameters(connection, id.0)
        })
    }

    fn original_parameters(&self, instance: JobInstanceId) -> Result<JobParameters, RepositoryError> {
        self.pool.read("read the job parameters", |connection| {
            match execution_ids(connection, instance)?.first() {
                Some(first) => load_parameters(connection, first.0),
                None => Ok(JobParameters::new()),
            }
        })
    }

    fn steps(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>, RepositoryError> {
        self.pool.read("list the step executions", |connection| {
            let rows: Vec<StepRow> = batch_step_execution::table
                .filter(batch_step_execution::job_execution_id.eq(execution.0))
                .order(batch_step_execution::step_execution_id.asc())
                .select(StepRow::as_select())
                .load(connection)?;
            rows.into_iter()
                .map(StepExecution::try_from)
                .collect::<Result<_, _>>()
                .map_err(refused)
        })
    }
}
