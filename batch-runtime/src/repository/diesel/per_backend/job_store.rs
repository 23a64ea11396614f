//! Job executions: their claim, start and end.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use diesel::prelude::*;

use super::contexts::{context_after, job_state_in, save_job_state};
use super::executions::{execution_ids, execution_in, last_execution};
use super::lease::{LeaseRow, lease_of};
use super::rows::{parameter_rows, stored_message};
use super::schema::{
    batch_job_execution, batch_job_execution_context, batch_job_execution_params, batch_job_instance,
    batch_step_execution,
};
use super::{Connection, Db, Repository, Work, rejected};
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::parameters::JobParameters;
use crate::repository::diesel::backend::{Backend, Sequence};
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::{
    TransactionError, concurrent_change, on_unique_violation,
};
use crate::repository::{
    Claim, ClaimError, ClaimRequest, Connector, ElementState, Ending, JobState, JobStore, Lease,
    RepositoryError, RestartPosition, Signal, Target,
};
use crate::status::BatchStatus;

type ClaimWork<T> = Work<T, ClaimError>;

/// The ids that an earlier attempt of a claim has allocated.
#[derive(Default)]
struct AllocatedIds {
    instance: Cell<Option<i64>>,
    execution: Cell<Option<i64>>,
    /// Whether that attempt may be committed, now or later.
    in_doubt: Cell<bool>,
}

impl JobStore for Repository {
    fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        let earlier = AllocatedIds::default();
        self.pool
            .write_idempotent("start the job execution", |connection, in_doubt| {
                earlier.in_doubt.set(in_doubt);
                match self.claim_in_doubt(connection, &earlier)? {
                    Some(claim) => Ok(Ok(claim)),
                    None => self.claim_in(connection, request, &earlier),
                }
            })?
    }

    fn begin_job(&self, lease: &Lease, execution: &mut JobExecution) -> Result<bool, RepositoryError> {
        const ACTION: &str = "record the start of the job execution";
        let (started, now) = (BatchStatus::Started, self.now());
        let is_started = self.pool.write_idempotent(ACTION, |connection, in_doubt| {
            let row = batch_job_execution::table
                .find(execution.id.0)
                .filter(batch_job_execution::version.eq(execution.version));
            let changed = diesel::update(row)
                .set((
                    batch_job_execution::version.eq(execution.version + 1),
                    batch_job_execution::status.eq(started.as_str()),
                    batch_job_execution::start_time.eq(now),
                    batch_job_execution::last_updated.eq(now),
                ))
                .execute(connection)?;
            if in_doubt && changed == 0 && is_as_written(connection, execution, started, now)? {
                return Ok(true);
            }
            if changed == 0 {
                self.adopt_stop(connection, lease, execution, ACTION)?;
            }
            Ok(changed == 1)
        })?;
        if is_started {
            execution.version += 1;
            execution.status = started;
            execution.started = Some(self.time(now));
        }
        Ok(is_started)
    }

    fn end_job(
        &self,
        lease: &Lease,
        execution: &mut JobExecution,
        ending: &Ending,
    ) -> Result<bool, RepositoryError> {
        const ACTION: &str = "record the end of the job execution";
        // The clock may have been set back meanwhile.
        let now = execution
            .started
            .map_or(self.now(), |started| self.column(started).max(self.now()));
        let message = stored_message(&ending.message);
        let is_ended = self.pool.write_idempotent(ACTION, |connection, in_doubt| {
            let row = batch_job_execution::table
                .find(execution.id.0)
                .filter(batch_job_execution::version.eq(execution.version));
            let changed = diesel::update(row)
                .set((
                    batch_job_execution::version.eq(execution.version + 1),
                    batch_job_execution::status.eq(ending.status.as_str()),
                    batch_job_execution::exit_code.eq(&ending.exit_status),
                    batch_job_execution::exit_message.eq(&message),
                    batch_job_execution::end_time.eq(now),
                    batch_job_execution::last_updated.eq(now),
                ))
                .execute(connection)?;
            if in_doubt && changed == 0 && is_as_written(connection, execution, ending.status, now)? {
                return Ok(true);
            }
            if changed == 0 {
                self.adopt_stop(connection, lease, execution, ACTION)?;
                return Ok(false);
            }
            if !self.release_lease_in(connection, lease)? {
                return Err(TransactionError::Rejected(RepositoryError::Fenced {
                    action: ACTION,
                }));
            }
            if let Some(restart) = &ending.restart {
                let state = JobState {
                    restart: Some(restart.clone()),
                    ..job_state_in(connection, execution.id.0)?
                };
                save_job_state(connection, execution.id, &state)?;
            }
            Ok(true)
        })?;
        if is_ended {
            execution.version += 1;
            execution.status = ending.status;
            execution.exit_status.clone_from(&ending.exit_status);
            execution.exit_message = message;
            execution.ended = Some(self.time(now));
            execution.last_updated = self.time(now);
        }
        Ok(is_ended)
    }

    fn restart_position(&self, execution: &JobExecution) -> Result<Option<RestartPosition>, RepositoryError> {
        self.pool.read("read the restart position", |connection| {
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

    fn save_element_state(
        &self,
        lease: &Lease,
        element: &str,
        state: &ElementState,
    ) -> Result<(), RepositoryError> {
        const ACTION: &str = "record the state of a parallel element";
        self.pool.write_idempotent(ACTION, |connection, _| {
            // Worker processes save states of the same execution. The row has no VERSION to compare, so the lease itself is
            // checked.
            Db::lock_executions(connection, lease.instance_id.0)?;
            if !self.holds(connection, lease)? {
                return Err(rejected(RepositoryError::Fenced { action: ACTION }));
            }
            let mut stored = job_state_in(connection, lease.execution_id.0)?;
            stored.restart = None;
            stored.elements.insert(element.to_owned(), state.clone());
            save_job_state(connection, lease.execution_id, &stored)
        })
    }

    fn renew_lease(&self, lease: &Lease) -> Result<bool, RepositoryError> {
        self.pool.write_with_priority("renew the lease", |connection, _| {
            Ok(self.renew_lease_in(connection, lease)?)
        })
    }

    fn release_lease(&self, lease: &Lease) -> Result<(), RepositoryError> {
        self.pool.write_idempotent("release the lease", |connection, _| {
            self.release_lease_in(connection, lease)?;
            Ok(())
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

    fn connector(&self) -> Connector {
        self.pool.connector()
    }
}

impl Repository {
    /// Claims the instance of the request. The inner error is a rejection that is committed, because it is recorded.
    fn claim_in(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        earlier: &AllocatedIds,
    ) -> ClaimWork<Result<Claim, ClaimError>> {
        let (instance, previous) = match &request.target {
            Target::New => {
                // The same id as in the earlier attempt: if that is committed after all, this one conflicts with it.
                let allocated = earlier.instance.get().filter(|_| earlier.in_doubt.get());
                let mut run_id = match allocated {
                    Some(allocated) => allocated,
                    None => Db::next_id(&self.pool, connection, Sequence::Instance)?,
                };
                let mut parameters = request.parameters.clone().for_start(run_id);
                // An imported instance may have the same key.
                while allocated.is_none() && is_taken(connection, request.job_name, &parameters.job_key())? {
                    run_id = Db::next_id(&self.pool, connection, Sequence::Instance)?;
                    parameters = request.parameters.clone().for_start(run_id);
                }
                earlier.instance.set(Some(run_id));
                let instance = insert_instance(connection, run_id, request.job_name, &parameters.job_key())?;
                return self.begin_execution(connection, request, instance, parameters, None, earlier);
            }
            Target::Identified(key) => {
                let found: Option<i64> = batch_job_instance::table
                    .filter(batch_job_instance::job_name.eq(request.job_name))
                    .filter(batch_job_instance::job_key.eq(key))
                    .select(batch_job_instance::job_instance_id)
                    .first(connection)
                    .optional()?;
                match found {
                    Some(instance) => {
                        lock_existing_instance(connection, instance)?;
                        (instance, last_execution(connection, instance)?)
                    }
                    None => {
                        let id = Db::next_id(&self.pool, connection, Sequence::Instance)?;
                        (insert_instance(connection, id, request.job_name, key)?, None)
                    }
                }
            }
            &Target::InstanceOf(id) => {
                let execution = execution_in(connection, id.0)?
                    .ok_or(TransactionError::Rejected(ClaimError::NoSuchExecution(id)))?;
                let instance = execution.instance_id.0;
                lock_existing_instance(connection, instance)?;
                let last = last_execution(connection, instance)?;
                // Recovery continues only executions that are still dead: an operator may have stopped this one meanwhile.
                let is_dead = last.as_ref().is_some_and(|last| {
                    last.id == id && matches!(last.status, BatchStatus::Starting | BatchStatus::Started)
                });
                if request.crash_limit.is_some() && !is_dead {
                    return Err(TransactionError::Rejected(ClaimError::TakenOver));
                }
                (instance, last)
            }
        };
        self.begin_execution(
            connection,
            request,
            instance,
            request.parameters.clone(),
            previous,
            earlier,
        )
    }

    /// Returns the claim of an earlier attempt if it has been committed after all.
    fn claim_in_doubt(
        &self,
        connection: &mut Connection,
        earlier: &AllocatedIds,
    ) -> ClaimWork<Option<Claim>> {
        let Some(id) = earlier.execution.get().filter(|_| earlier.in_doubt.get()) else {
            return Ok(None);
        };
        let Some(execution) = execution_in(connection, id)? else {
            return Ok(None);
        };
        let lease = lease_of(connection, execution.instance_id.0)?;
        let Some(lease) =
            lease.filter(|lease| lease.owner == self.owner.name() && lease.job_execution_id == id)
        else {
            return Err(TransactionError::Rejected(ClaimError::Repository(
                RepositoryError::Fenced {
                    action: "start the job execution",
                },
            )));
        };
        Ok(Some(Claim {
            lease: Lease {
                instance_id: execution.instance_id,
                execution_id: execution.id,
                fence: lease.fence,
                partition: None,
            },
            execution,
            taken_over: Vec::new(),
        }))
    }

    /// Checks that the instance may run, closes what a dead owner left, and inserts the execution.
    fn begin_execution(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        instance: i64,
        parameters: JobParameters,
        previous: Option<JobExecution>,
        earlier: &AllocatedIds,
    ) -> ClaimWork<Result<Claim, ClaimError>> {
        let reject = |error| Err(TransactionError::Rejected(error));
        // The row of the instance is locked, so the earlier attempt has ended.
        if let Some(claim) = self.claim_in_doubt(connection, earlier)? {
            return Ok(Ok(claim));
        }
        let lease = lease_of(connection, instance)?;
        if let Some(running) = self.running_execution(connection, previous.as_ref(), lease.as_ref())? {
            return reject(running);
        }
        if let Some(rejection) = rejection_of_ended_instance(connection, instance)? {
            return reject(rejection);
        }
        if let Some(previous) = previous.as_ref().filter(|_| !request.restartable) {
            return reject(ClaimError::NotRestartable {
                execution: previous.id,
            });
        }
        let taken_over = self.close_open_executions(connection, instance, lease.as_ref())?;
        let progress = match &lease {
            Some(_) => progress_of(connection, instance)?,
            // A new instance has no progress.
            None => 0,
        };
        let crashes = match (&lease, request.crash_limit) {
            (Some(row), Some(_)) => row.crashes(progress),
            _ => 0,
        };
        if let (Some(row), Some(previous)) = (&lease, &previous)
            && request
                .crash_limit
                .is_some_and(|limit| limit > 0 && crashes > i64::from(limit))
        {
            Self::void_lease_of_crash_loop(connection, instance, row, crashes, progress)?;
            return Ok(Err(ClaimError::CrashLoop {
                execution: previous.id,
                crashes,
            }));
        }

        let (id, now) = (
            Db::next_id(&self.pool, connection, Sequence::Execution)?,
            self.now(),
        );
        earlier.execution.set(Some(id));
        diesel::insert_into(batch_job_execution::table)
            .values((
                batch_job_execution::job_execution_id.eq(id),
                batch_job_execution::version.eq(0),
                batch_job_execution::job_instance_id.eq(instance),
                batch_job_execution::create_time.eq(now),
                batch_job_execution::status.eq(BatchStatus::Starting.as_str()),
                batch_job_execution::exit_code.eq("UNKNOWN"),
                batch_job_execution::exit_message.eq(""),
                batch_job_execution::last_updated.eq(now),
                batch_job_execution::job_configuration_location.eq(request.location),
            ))
            .execute(connection)?;
        for row in parameter_rows(id, &parameters, connection.settings()) {
            diesel::insert_into(batch_job_execution_params::table)
                .values(row)
                .execute(connection)?;
        }
        let context = match &previous {
            Some(previous) => context_after(connection, previous.id.0)?,
            None => JobState::default().for_next(),
        };
        diesel::insert_into(batch_job_execution_context::table)
            .values((
                batch_job_execution_context::job_execution_id.eq(id),
                batch_job_execution_context::short_context.eq(context.short),
                batch_job_execution_context::serialized_context.eq(context.serialized),
            ))
            .execute(connection)?;
        let fence = self.take_lease(connection, instance, id, lease.as_ref(), (crashes, progress))?;
        let execution = execution_in(connection, id)?.ok_or(TransactionError::Rejected(
            ClaimError::NoSuchExecution(JobExecutionId(id)),
        ))?;
        let lease = Lease {
            instance_id: execution.instance_id,
            execution_id: execution.id,
            fence,
            partition: None,
        };
        Ok(Ok(Claim {
            execution,
            lease,
            taken_over,
        }))
    }

    /// Returns the rejection if the instance is running: run by the lease holder, regardless of the status column, or by a
    /// program that keeps no lease.
    pub(super) fn running_execution(
        &self,
        connection: &mut Connection,
        previous: Option<&JobExecution>,
        lease: Option<&LeaseRow>,
    ) -> QueryResult<Option<ClaimError>> {
        match (lease, previous) {
            (Some(row), _) if self.is_held(connection, row)? => {
                let execution = JobExecutionId(row.job_execution_id);
                let owner = self.described_owner(connection, row)?;
                Ok(Some(ClaimError::Running { execution, owner }))
            }
            // A lease says nothing about other executions.
            (lease, Some(open))
                if !open.status.is_final() && lease.is_none_or(|row| row.job_execution_id != open.id.0) =>
            {
                let owner = "another program that keeps no lease, such as Spring Batch".into();
                Ok(Some(ClaimError::Running {
                    execution: open.id,
                    owner,
                }))
            }
            _ => Ok(None),
        }
    }

    /// Handles a changed VERSION of the job row: either a stop was requested, which the runner adopts, or another runtime has
    /// taken the execution over. Spec: REPO-17
    fn adopt_stop(
        &self,
        connection: &mut Connection,
        lease: &Lease,
        execution: &mut JobExecution,
        action: &'static str,
    ) -> Work<()> {
        let fenced = || TransactionError::Rejected(RepositoryError::Fenced { action });
        let current = execution_in(connection, execution.id.0)?.ok_or_else(fenced)?;
        if current.status != BatchStatus::Stopping || !self.holds(connection, lease)? {
            return Err(fenced());
        }
        *execution = current;
        Ok(())
    }
}

/// Locks an instance that was found before. If it has been deleted meanwhile, the claim starts over.
fn lock_existing_instance(connection: &mut Connection, instance: i64) -> ClaimWork<()> {
    if Db::lock_instance(connection, instance)? {
        Ok(())
    } else {
        Err(concurrent_change())
    }
}

fn insert_instance(connection: &mut Connection, id: i64, job_name: &str, key: &str) -> ClaimWork<i64> {
    diesel::insert_into(batch_job_instance::table)
        .values((
            batch_job_instance::job_instance_id.eq(id),
            batch_job_instance::version.eq(0),
            batch_job_instance::job_name.eq(job_name),
            batch_job_instance::job_key.eq(key),
        ))
        .execute(connection)
        .map_err(on_unique_violation)?;
    Ok(id)
}

fn is_taken(connection: &mut Connection, job_name: &str, key: &str) -> QueryResult<bool> {
    let same: i64 = batch_job_instance::table
        .filter(batch_job_instance::job_name.eq(job_name))
        .filter(batch_job_instance::job_key.eq(key))
        .count()
        .get_result(connection)?;
    Ok(same > 0)
}

/// Returns the progress of an instance: it grows with each commit of a chunk and each completed step.
fn progress_of(connection: &mut Connection, instance: i64) -> QueryResult<i64> {
    let of_instance = || {
        batch_step_execution::table
            .inner_join(batch_job_execution::table)
            .filter(batch_job_execution::job_instance_id.eq(instance))
    };
    let commits: Vec<Option<i64>> = of_instance()
        .filter(batch_step_execution::commit_count.gt(0))
        .select(batch_step_execution::commit_count)
        .load(connection)?;
    let complete: i64 = of_instance()
        .filter(batch_step_execution::status.eq(BatchStatus::Completed.as_str()))
        .count()
        .get_result(connection)?;
    Ok(commits.into_iter().flatten().sum::<i64>() + complete)
}

/// Returns the rejection if the instance is complete or abandoned.
fn rejection_of_ended_instance(
    connection: &mut Connection,
    instance: i64,
) -> QueryResult<Option<ClaimError>> {
    let final_statuses = [BatchStatus::Completed, BatchStatus::Abandoned].map(BatchStatus::as_str);
    let ended: Vec<(i64, Option<String>)> = batch_job_execution::table
        .filter(batch_job_execution::job_instance_id.eq(instance))
        .filter(batch_job_execution::status.eq_any(final_statuses))
        .select((batch_job_execution::job_execution_id, batch_job_execution::status))
        .load(connection)?;
    let with = |status: BatchStatus| {
        let found = ended
            .iter()
            .find(|(_, of)| of.as_deref() == Some(status.as_str()));
        found.map(|(id, _)| JobExecutionId(*id))
    };
    let complete = with(BatchStatus::Completed).map(|execution| ClaimError::Complete { execution });
    let abandoned = || with(BatchStatus::Abandoned).map(|execution| ClaimError::Abandoned { execution });
    Ok(complete.or_else(abandoned))
}

/// Returns whether a row is as this runner has written it in a transaction whose outcome is unknown. Whoever closes the
/// execution of a dead runner writes another time or status.
fn is_as_written(
    connection: &mut Connection,
    before: &JobExecution,
    status: BatchStatus,
    now: DbTimestamp,
) -> QueryResult<bool> {
    let row = batch_job_execution::table
        .find(before.id.0)
        .filter(batch_job_execution::version.eq(before.version + 1))
        .filter(batch_job_execution::status.eq(status.as_str()))
        .filter(batch_job_execution::last_updated.eq(now));
    Ok(row.count().get_result::<i64>(connection)? == 1)
}
