//! Beginning and ending job executions.

use std::cell::Cell;

use diesel::prelude::*;

use super::lease::{LeaseRow, lease_of};
use super::queries::{context_after, execution_in, job_state_in, keep_job_state, last_execution};
use super::rows::{parameter_rows, stored_message};
use super::schema::{
    batch_job_execution, batch_job_execution_context, batch_job_execution_params, batch_job_instance,
    batch_step_execution,
};
use super::{
    Connection, Moment, Repository, RunQueryDsl, Sequence, TransactionError, lock_instance,
    overtaken_by_a_change, overtaken_by_a_double,
};
use crate::clock::Timestamp;
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::parameters::JobParameters;
use crate::repository::{Claim, ClaimError, ClaimRequest, Ending, JobState, Lease, RepositoryError, Target};
use crate::status::BatchStatus;

type ClaimResult<T> = Result<T, TransactionError<ClaimError>>;
type WriteResult<T> = Result<T, TransactionError<RepositoryError>>;

/// The numbers that an earlier try of a claim has drawn.
#[derive(Default)]
struct Drawn {
    instance: Cell<Option<i64>>,
    execution: Cell<Option<i64>>,
    /// Whether it may be committed, or be committed yet.
    in_doubt: Cell<bool>,
}

impl Repository {
    pub(super) fn claim_execution(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        let earlier = Drawn::default();
        self.pool
            .write_surely("begin the job execution", |connection, in_doubt| {
                earlier.in_doubt.set(in_doubt);
                match self.claim_in_doubt(connection, &earlier)? {
                    Some(claim) => Ok(Ok(claim)),
                    None => self.claim_in(connection, request, &earlier),
                }
            })?
    }

    /// An inner error is a refusal that is recorded.
    fn claim_in(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        earlier: &Drawn,
    ) -> ClaimResult<Result<Claim, ClaimError>> {
        let (instance, previous) = match &request.target {
            Target::New => {
                // The same number as in the earlier try: should that be committed yet, this one comes too late.
                let drawn = earlier.instance.get().filter(|_| earlier.in_doubt.get());
                let mut run_id = match drawn {
                    Some(drawn) => drawn,
                    None => self.next_id(connection, Sequence::Instance)?,
                };
                let mut parameters = request.parameters.clone().for_start(run_id);
                // An instance that was imported may have the number already.
                while drawn.is_none() && is_taken(connection, request.job_name, &parameters.job_key())? {
                    run_id = self.next_id(connection, Sequence::Instance)?;
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
                        wait_for_instance(connection, instance)?;
                        (instance, last_execution(connection, instance)?)
                    }
                    None => {
                        let id = self.next_id(connection, Sequence::Instance)?;
                        (insert_instance(connection, id, request.job_name, key)?, None)
                    }
                }
            }
            &Target::InstanceOf(id) => {
                let execution = execution_in(connection, id.0)?
                    .ok_or(TransactionError::Refused(ClaimError::NoSuchExecution(id)))?;
                let instance = execution.instance_id.0;
                wait_for_instance(connection, instance)?;
                let last = last_execution(connection, instance)?;
                // By itself, only what is still dead goes on: an operator may have stopped it meanwhile.
                let is_dead = last.as_ref().is_some_and(|last| {
                    last.id == id && matches!(last.status, BatchStatus::Starting | BatchStatus::Started)
                });
                if request.crash_limit.is_some() && !is_dead {
                    return Err(TransactionError::Refused(ClaimError::Overtaken));
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

    /// The claim of an earlier try that has been committed after all.
    fn claim_in_doubt(&self, connection: &mut Connection, earlier: &Drawn) -> ClaimResult<Option<Claim>> {
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
            return Err(TransactionError::Refused(ClaimError::Repository(
                RepositoryError::Fenced {
                    action: "begin the job execution",
                },
            )));
        };
        Ok(Some(Claim {
            lease: Lease {
                instance_id: execution.instance_id,
                execution_id: execution.id,
                fence: lease.fence,
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
        earlier: &Drawn,
    ) -> ClaimResult<Result<Claim, ClaimError>> {
        let refuse = |error| Err(TransactionError::Refused(error));
        // The row of the instance is locked by now, for which one waits until the earlier try has ended.
        if let Some(claim) = self.claim_in_doubt(connection, earlier)? {
            return Ok(Ok(claim));
        }
        let lease = lease_of(connection, instance)?;
        if let Some(running) = self.running_execution(connection, previous.as_ref(), lease.as_ref())? {
            return refuse(running);
        }
        if let Some(over) = refusal_of_what_is_over(connection, instance)? {
            return refuse(over);
        }
        if let Some(previous) = previous.as_ref().filter(|_| !request.restartable) {
            return refuse(ClaimError::NotRestartable {
                execution: previous.id,
            });
        }
        let taken_over = self.close_open_executions(connection, instance, lease.as_ref())?;
        let progress = match &lease {
            Some(_) => progress_of(connection, instance)?,
            // A new instance has achieved nothing.
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
            Self::leave_lease(connection, instance, row, crashes, progress)?;
            return Ok(Err(ClaimError::CrashLoop {
                execution: previous.id,
                crashes,
            }));
        }

        let (id, now) = (self.next_id(connection, Sequence::Execution)?, self.now());
        earlier.execution.set(Some(id));
        diesel::insert_into(batch_job_execution::table)
            .values((
                batch_job_execution::job_execution_id.eq(id),
                batch_job_execution::version.eq(0),
                batch_job_execution::job_instance_id.eq(instance),
                batch_job_execution::create_time.eq(Moment(now)),
                batch_job_execution::status.eq(BatchStatus::Starting.as_str()),
                batch_job_execution::exit_code.eq("UNKNOWN"),
                batch_job_execution::exit_message.eq(""),
                batch_job_execution::last_updated.eq(Moment(now)),
                batch_job_execution::job_configuration_location.eq(request.location),
            ))
            .execute(connection)?;
        for row in parameter_rows(id, &parameters) {
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
        let execution = execution_in(connection, id)?.ok_or(TransactionError::Refused(
            ClaimError::NoSuchExecution(JobExecutionId(id)),
        ))?;
        let lease = Lease {
            instance_id: execution.instance_id,
            execution_id: execution.id,
            fence,
        };
        Ok(Ok(Claim {
            execution,
            lease,
            taken_over,
        }))
    }

    /// The refusal, when somebody runs the instance: he who holds its lease, whatever the rows say, or a program that
    /// keeps none.
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
            // A lease speaks for its own execution only.
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

    /// A job row that the runner does not recognise: either somebody asked for a stop, which is adopted, or the execution
    /// is somebody else's now. Spec: REPO-17
    fn adopt_stop(
        &self,
        connection: &mut Connection,
        lease: &Lease,
        execution: &mut JobExecution,
        action: &'static str,
    ) -> WriteResult<()> {
        let fenced = || TransactionError::Refused(RepositoryError::Fenced { action });
        let current = execution_in(connection, execution.id.0)?.ok_or_else(fenced)?;
        if current.status != BatchStatus::Stopping || !self.holds(connection, lease)? {
            return Err(fenced());
        }
        *execution = current;
        Ok(())
    }

    pub(super) fn mark_started(
        &self,
        lease: &Lease,
        execution: &mut JobExecution,
    ) -> Result<bool, RepositoryError> {
        const ACTION: &str = "record the start of the job execution";
        let (started, now) = (BatchStatus::Started, self.now());
        let begun = self.pool.write_surely(ACTION, |connection, in_doubt| {
            let row = batch_job_execution::table
                .find(execution.id.0)
                .filter(batch_job_execution::version.eq(execution.version));
            let changed = diesel::update(row)
                .set((
                    batch_job_execution::version.eq(execution.version + 1),
                    batch_job_execution::status.eq(started.as_str()),
                    batch_job_execution::start_time.eq(Moment(now)),
                    batch_job_execution::last_updated.eq(Moment(now)),
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
        if begun {
            execution.version += 1;
            execution.status = started;
            execution.started = Some(Timestamp(now));
        }
        Ok(begun)
    }

    pub(super) fn mark_ended(
        &self,
        lease: &Lease,
        execution: &mut JobExecution,
        ending: &Ending,
    ) -> Result<bool, RepositoryError> {
        const ACTION: &str = "record the end of the job execution";
        // The clock may have been set back meanwhile.
        let now = execution
            .started
            .map_or(self.now(), |started| started.0.max(self.now()));
        let message = stored_message(&ending.message);
        let ended = self.pool.write_surely(ACTION, |connection, in_doubt| {
            let row = batch_job_execution::table
                .find(execution.id.0)
                .filter(batch_job_execution::version.eq(execution.version));
            let changed = diesel::update(row)
                .set((
                    batch_job_execution::version.eq(execution.version + 1),
                    batch_job_execution::status.eq(ending.status.as_str()),
                    batch_job_execution::exit_code.eq(&ending.exit_status),
                    batch_job_execution::exit_message.eq(&message),
                    batch_job_execution::end_time.eq(Moment(now)),
                    batch_job_execution::last_updated.eq(Moment(now)),
                ))
                .execute(connection)?;
            if in_doubt && changed == 0 && is_as_written(connection, execution, ending.status, now)? {
                return Ok(true);
            }
            if changed == 0 {
                self.adopt_stop(connection, lease, execution, ACTION)?;
                return Ok(false);
            }
            if !self.release_lease(connection, lease)? {
                return Err(TransactionError::Refused(RepositoryError::Fenced {
                    action: ACTION,
                }));
            }
            if let Some(restart) = &ending.restart {
                let state = JobState {
                    restart: Some(restart.clone()),
                    ..job_state_in(connection, execution.id.0)?
                };
                keep_job_state(connection, execution.id, &state)?;
            }
            Ok(true)
        })?;
        if ended {
            execution.version += 1;
            execution.status = ending.status;
            execution.exit_status.clone_from(&ending.exit_status);
            execution.exit_message = message;
            execution.ended = Some(Timestamp(now));
            execution.last_updated = Timestamp(now);
        }
        Ok(ended)
    }
}

/// Locks it. Who deletes it comes first: then there is another one to be looked for, or none.
fn wait_for_instance(connection: &mut Connection, instance: i64) -> ClaimResult<()> {
    if lock_instance(connection, instance)? {
        Ok(())
    } else {
        Err(overtaken_by_a_change())
    }
}

fn insert_instance(connection: &mut Connection, id: i64, job_name: &str, key: &str) -> ClaimResult<i64> {
    diesel::insert_into(batch_job_instance::table)
        .values((
            batch_job_instance::job_instance_id.eq(id),
            batch_job_instance::version.eq(0),
            batch_job_instance::job_name.eq(job_name),
            batch_job_instance::job_key.eq(key),
        ))
        .execute(connection)
        .map_err(overtaken_by_a_double)?;
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

/// What an instance has achieved: it grows with each commit of a chunk, and with each step that is complete.
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

/// The refusal, when the instance is complete, or was given up.
fn refusal_of_what_is_over(connection: &mut Connection, instance: i64) -> QueryResult<Option<ClaimError>> {
    let over = [BatchStatus::Completed, BatchStatus::Abandoned].map(BatchStatus::as_str);
    let ended: Vec<(i64, Option<String>)> = batch_job_execution::table
        .filter(batch_job_execution::job_instance_id.eq(instance))
        .filter(batch_job_execution::status.eq_any(over))
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

/// Whether a row is as this runner would have written it, had the answer come. Whoever closes what a runner leaves behind
/// writes another time, or another status.
fn is_as_written(
    connection: &mut Connection,
    before: &JobExecution,
    status: BatchStatus,
    now: i64,
) -> QueryResult<bool> {
    let row = batch_job_execution::table
        .find(before.id.0)
        .filter(batch_job_execution::version.eq(before.version + 1))
        .filter(batch_job_execution::status.eq(status.as_str()))
        .filter(batch_job_execution::last_updated.eq(Moment(now)));
    Ok(row.count().get_result::<i64>(connection)? == 1)
}
