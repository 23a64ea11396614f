//! Claiming an instance: the checks, the execution that is inserted, the lease.

use std::cell::Cell;
use std::collections::BTreeMap;

use diesel::prelude::*;

use super::contexts::{insert_job_context, job_state_in, step_contexts, step_state_of};
use super::executions::{execution_in, insert_instance, instance_with, last_execution};
use super::lease::{Crashes, LeaseRow, lease_of};
use super::parameters::insert_parameters;
use super::rows::{StepRow, load_steps};
use super::schema::{job_execution, step_execution};
use super::{Connection, Db, Repository, Work, corrupt, fenced};
use crate::execution::{JobExecution, JobInstance, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::diesel::backend::{Backend, Sequence};
use crate::repository::diesel::one_of::{one_of, one_of_many};
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::sequences::Sequences as _;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::{TransactionError, concurrent_change};
use crate::repository::rules;
use crate::repository::{Claim, ClaimError, ClaimRequest, JobState, Lease, RepositoryError, Target};
use crate::status::BatchStatus;

pub(super) type ClaimWork<T> = Work<T, ClaimError>;

const ACTION: &str = "start the job execution";

/// The ids that an earlier attempt of a claim has allocated.
#[derive(Default)]
struct AllocatedIds {
    instance: Cell<Option<i64>>,
    execution: Cell<Option<i64>>,
    /// Whether that attempt may be committed, now or later.
    in_doubt: Cell<bool>,
}

/// The instance that a claim is for, locked.
pub(super) struct Claimed {
    pub(super) instance: i64,
    pub(super) parameters: JobParameters,
    /// The newest execution of the instance.
    pub(super) previous: Option<JobExecution>,
}

impl Repository {
    /// Implements `JobStore::claim`.
    pub(super) fn claim_instance(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        let earlier = AllocatedIds::default();
        self.run(Tx::write(ACTION), |connection, in_doubt| {
            earlier.in_doubt.set(in_doubt);
            // The COMMIT of an earlier attempt may have been carried out although its connection was lost: the
            // instance would then be found running, by this very launch.
            if let Some(claim) = self.claim_in_doubt(connection, &earlier)? {
                return Ok(Ok(claim));
            }
            let claimed = match &request.target {
                Target::New => self.new_instance(connection, request, &earlier)?,
                Target::Identified(key) => self.identified_instance(connection, request, key)?,
                Target::InstanceOf(id) => instance_of(connection, request, *id)?,
            };
            self.begin_execution(connection, request, claimed, &earlier)
        })?
    }

    /// Inserts a new instance. Its id is also the value of the run parameter, which makes its key unique.
    fn new_instance(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        earlier: &AllocatedIds,
    ) -> ClaimWork<Claimed> {
        // The same id as in the earlier attempt: if that is committed after all, this one conflicts with it.
        let allocated = earlier.instance.get().filter(|_| earlier.in_doubt.get());
        let mut run_id = match allocated {
            Some(allocated) => allocated,
            None => Db::next_id(&self.pool, connection, Sequence::Instance)?,
        };
        let identified = |run_id: i64| {
            let parameters = request.parameters.clone().for_start(run_id);
            let key = parameters.job_key_in(&self.settings.format);
            // The text of a number is certain.
            let key =
                key.map_err(|_| TransactionError::Rejected(ClaimError::from(RepositoryError::Fault)))?;
            ClaimWork::Ok((parameters, key))
        };
        let (mut parameters, mut key) = identified(run_id)?;
        // An imported instance may have the same key.
        while allocated.is_none() && instance_with(connection, request.job_name, &key)?.is_some() {
            run_id = Db::next_id(&self.pool, connection, Sequence::Instance)?;
            (parameters, key) = identified(run_id)?;
        }
        earlier.instance.set(Some(run_id));
        insert_instance(connection, run_id, request.job_name, &key)?;
        Ok(Claimed {
            instance: run_id,
            parameters,
            previous: None,
        })
    }

    /// Finds and locks the instance with this key, or inserts it.
    fn identified_instance(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        key: &str,
    ) -> ClaimWork<Claimed> {
        let found = instance_with(connection, request.job_name, key)?;
        let (instance, previous) = match found {
            Some(JobInstance {
                id: JobInstanceId(instance),
                ..
            }) => {
                // The newest execution is read under the lock: another launch may have inserted one since the
                // instance was found.
                lock_existing_instance(connection, instance)?;
                (instance, last_execution(connection, instance)?)
            }
            None => {
                let id = Db::next_id(&self.pool, connection, Sequence::Instance)?;
                insert_instance(connection, id, request.job_name, key)?;
                (id, None)
            }
        };
        Ok(Claimed {
            instance,
            parameters: request.parameters.clone(),
            previous,
        })
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
        // The attempt was committed, but another runtime may have taken its execution over since: the lease then
        // names that one.
        let Some(lease) =
            lease.filter(|lease| lease.owner == self.owner.name() && lease.job_execution_id == id)
        else {
            return Err(fenced(ACTION));
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
            // The histories are not known here, so they have to be read.
            is_first: false,
            previous_traceparent: None,
        }))
    }

    /// Checks that the instance may run, closes the executions of a dead owner, and inserts the execution. The inner error is a
    /// rejection that is committed, because it is recorded.
    fn begin_execution(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        claimed: Claimed,
        earlier: &AllocatedIds,
    ) -> ClaimWork<Result<Claim, ClaimError>> {
        // The row of the instance is locked, so the earlier attempt has ended.
        if let Some(claim) = self.claim_in_doubt(connection, earlier)? {
            return Ok(Ok(claim));
        }
        let instance = claimed.instance;
        let lease = lease_of(connection, instance)?;
        self.check_may_run(connection, request, &claimed, lease.as_ref())?;
        // Before the executions are closed, because their messages name the damage.
        let unreadable = unreadable_state(connection, &claimed)?;
        let cause = unreadable.as_ref().map(ToString::to_string);
        let taken_over =
            self.close_open_executions(connection, instance, lease.as_ref(), cause.as_deref())?;
        let crashes = count_crashes(connection, request, instance, lease.as_ref())?;
        let previous = claimed.previous.as_ref();
        if let Some(rejection) = rules::recorded_rejection(request, previous, crashes.in_a_row, unreadable) {
            let is_loop = matches!(rejection, ClaimError::CrashLoop { .. });
            // The dead owner may only be suspended: with a new fence, the repository rejects what it still writes.
            if let Some(row) = lease.as_ref().filter(|row| is_loop || !row.is_free()) {
                Self::void_lease(connection, instance, row, Some(crashes))?;
            }
            self.notify_of_closed(connection, &taken_over)?;
            return Ok(Err(rejection));
        }
        let (id, previous_traceparent) = self.insert_execution(connection, request, &claimed, earlier)?;
        // After the rows of the executions: all transactions lock them in this order, to prevent deadlock.
        let fence = self.take_lease(connection, instance, id, lease.as_ref(), crashes)?;
        // In the transaction that creates the execution: the next launch of the job must find its turn.
        self.enter_turn(connection, request.job_name, id, request.concurrency)?;
        // If another worker has taken the launch over, the execution is rolled back with it.
        if let Some(launch) = request.launch {
            self.bind_launch(connection, launch, id)?;
        }
        let execution = execution_in(connection, id)?.ok_or(TransactionError::Rejected(
            ClaimError::NoSuchExecution(JobExecutionId(id)),
        ))?;
        self.notify_of_claim(connection, request, &execution, &taken_over)
            .map_err(TransactionError::into_other)?;
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
            is_first: claimed.previous.is_none(),
            previous_traceparent,
        }))
    }

    pub(super) fn check_may_run(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        claimed: &Claimed,
        lease: Option<&LeaseRow>,
    ) -> ClaimWork<()> {
        let previous = claimed.previous.as_ref();
        let running = self.running_execution(connection, claimed.instance, previous, lease)?;
        let ended = || ended_executions(connection, claimed.instance);
        let rejection = rules::rejection(running, ended, previous, request.restartable)?;
        rejection.map_or(Ok(()), |rejection| Err(TransactionError::Rejected(rejection)))
    }

    /// Inserts the execution with its parameters and its context. Returns its id, and the trace context of the execution before.
    fn insert_execution(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        claimed: &Claimed,
        earlier: &AllocatedIds,
    ) -> ClaimWork<(i64, Option<String>)> {
        let id = Db::next_id(&self.pool, connection, Sequence::Execution)?;
        let now = self.now();
        // Before the commit, whose outcome may stay unknown: the next attempt looks for this row.
        earlier.execution.set(Some(id));
        diesel::insert_into(job_execution::table)
            .values((
                job_execution::job_execution_id.eq(id),
                job_execution::version.eq(0),
                job_execution::job_instance_id.eq(claimed.instance),
                job_execution::create_time.eq(now),
                job_execution::status.eq(BatchStatus::Starting.as_str()),
                // As Spring Batch inserts it.
                job_execution::exit_code.eq("UNKNOWN"),
                job_execution::exit_message.eq(""),
                job_execution::last_updated.eq(now),
                job_execution::job_configuration_location.eq(request.location),
            ))
            .execute(connection)?;
        insert_parameters(connection, id, &claimed.parameters)?;
        let previous = match &claimed.previous {
            Some(previous) => {
                job_state_in(connection, previous.id.0).map_err(TransactionError::into_other)?
            }
            None => JobState::default(),
        };
        // It keeps the entries of other programs, as they do themselves.
        let context = previous.for_next(request.traceparent.as_deref(), &self.settings.format);
        insert_job_context(connection, id, &context)?;
        Ok((id, previous.traceparent))
    }

    /// Returns the rejection if the instance is running: run by the lease holder, regardless of the status column, or by a
    /// program that keeps no lease.
    pub(super) fn running_execution(
        &self,
        connection: &mut Connection,
        instance: i64,
        previous: Option<&JobExecution>,
        lease: Option<&LeaseRow>,
    ) -> QueryResult<Option<ClaimError>> {
        match (lease, previous) {
            (Some(row), _) if self.is_held(connection, instance, row)? => {
                let execution = JobExecutionId(row.job_execution_id);
                let owner = self.described_owner(connection, row)?;
                Ok(Some(ClaimError::Running { execution, owner }))
            }
            (lease, previous) => {
                let lease_is_for = lease.map(|row| JobExecutionId(row.job_execution_id));
                Ok(rules::running_without_lease(previous, lease_is_for))
            }
        }
    }
}

/// Finds and locks the instance of an execution.
fn instance_of(
    connection: &mut Connection,
    request: &ClaimRequest<'_>,
    id: JobExecutionId,
) -> ClaimWork<Claimed> {
    let execution =
        execution_in(connection, id.0)?.ok_or(TransactionError::Rejected(ClaimError::NoSuchExecution(id)))?;
    let instance = execution.instance_id.0;
    lock_existing_instance(connection, instance)?;
    // Under the lock: an operator or another runtime may have ended the execution since recovery found it dead.
    let previous = last_execution(connection, instance)?;
    if !rules::may_continue(request, id, previous.as_ref()) {
        return Err(TransactionError::Rejected(ClaimError::TakenOver));
    }
    Ok(Claimed {
        instance,
        parameters: request.parameters.clone(),
        previous,
    })
}

/// Returns the damage that keeps an execution from resuming where the previous ones ended: in the tables, in the context of the
/// last job execution, or in the latest rows and contexts of the steps. Nothing is inserted then, and nothing unreadable is replaced.
// Spec: OP-35, REPO-69
fn unreadable_state(connection: &mut Connection, claimed: &Claimed) -> ClaimWork<Option<RepositoryError>> {
    let Some(previous) = &claimed.previous else {
        return Ok(None);
    };
    let read = |connection: &mut Connection| -> Work<()> {
        if let Some(problem) = Db::damage(connection)? {
            return Err(corrupt("a table".to_owned(), problem));
        }
        job_state_in(connection, previous.id.0)?;
        let latest = latest_steps(connection, claimed.instance)?;
        latest
            .chunks(STEPS)
            .try_for_each(|steps| check_steps(connection, steps))
    };
    match read(connection) {
        Ok(()) => Ok(None),
        Err(TransactionError::Rejected(damage @ RepositoryError::Corrupt { .. })) => Ok(Some(damage)),
        // A failing database is no damage: the launch fails, and nothing is closed.
        Err(error) => Err(error.into_other()),
    }
}

/// The number of steps that are read together: databases limit the number of values in one statement.
const STEPS: usize = 500;

/// Checks that rows and contexts of steps can be read.
fn check_steps(connection: &mut Connection, steps: &[i64]) -> Work<()> {
    let of_ids = step_execution::table.filter(one_of_many(step_execution::step_execution_id, steps));
    load_steps!(of_ids, connection)?;
    for (step, context) in step_contexts(connection, steps)? {
        step_state_of(connection, StepExecutionId(step), &context)?;
    }
    Ok(())
}

/// Returns the latest execution of each step of an instance.
fn latest_steps(connection: &mut Connection, instance: i64) -> QueryResult<Vec<i64>> {
    let all: Vec<(i64, String)> = step_execution::table
        .inner_join(job_execution::table)
        .filter(job_execution::job_instance_id.eq(instance))
        .order(step_execution::step_execution_id)
        .select((step_execution::step_execution_id, step_execution::step_name))
        .load(connection)?;
    // The rows are in the order of their ids, so the latest of each name replaces the others.
    let latest: BTreeMap<String, i64> = all.into_iter().map(|(id, name)| (name, id)).collect();
    Ok(latest.into_values().collect())
}

/// Counts the crashes in a row without progress.
fn count_crashes(
    connection: &mut Connection,
    request: &ClaimRequest<'_>,
    instance: i64,
    lease: Option<&LeaseRow>,
) -> QueryResult<Crashes> {
    let Some(row) = lease else {
        // A new instance.
        return Ok(Crashes::default());
    };
    let progress = progress_of(connection, instance)?;
    Ok(Crashes {
        // A restart by hand has no limit, and starts the count anew.
        in_a_row: request.crash_limit.map_or(0, |_| row.crashes(progress)),
        progress,
    })
}

/// Locks an instance that was found before. If it has been deleted meanwhile, the claim starts over.
fn lock_existing_instance(connection: &mut Connection, instance: i64) -> ClaimWork<()> {
    if Db::lock_instance(connection, instance)? {
        Ok(())
    } else {
        Err(concurrent_change())
    }
}

/// Returns the progress of an instance: it grows with each commit of a chunk and each completed step.
pub(super) fn progress_of(connection: &mut Connection, instance: i64) -> QueryResult<i64> {
    let of_instance = || {
        step_execution::table
            .inner_join(job_execution::table)
            .filter(job_execution::job_instance_id.eq(instance))
    };
    let commits: Vec<Option<i64>> = of_instance()
        .filter(step_execution::commit_count.gt(0))
        .select(step_execution::commit_count)
        .load(connection)?;
    // A batchlet commits no chunk: its progress is that it is complete.
    let complete: i64 = of_instance()
        .filter(step_execution::status.eq(BatchStatus::Completed.as_str()))
        .count()
        .get_result(connection)?;
    Ok(commits.into_iter().flatten().sum::<i64>() + complete)
}

/// Returns the executions of an instance that are complete, abandoned or UNKNOWN.
fn ended_executions(
    connection: &mut Connection,
    instance: i64,
) -> QueryResult<Vec<(JobExecutionId, BatchStatus)>> {
    let final_statuses = [
        BatchStatus::Completed,
        BatchStatus::Abandoned,
        BatchStatus::Unknown,
    ]
    .map(BatchStatus::as_str);
    let ended: Vec<(i64, Option<String>)> = job_execution::table
        .filter(job_execution::job_instance_id.eq(instance))
        .filter(one_of(job_execution::status, final_statuses))
        .select((job_execution::job_execution_id, job_execution::status))
        .load(connection)?;
    let known = |status: Option<String>| BatchStatus::from_repository(&status.unwrap_or_default());
    let ended = ended.into_iter();
    Ok(ended
        .filter_map(|(id, status)| Some((JobExecutionId(id), known(status)?)))
        .collect())
}
