//! Launches for workers.

use std::time::Duration;

use diesel::prelude::*;

use super::claim::{ClaimWork, Claimed};
use super::executions::{instance_with, last_execution};
use super::lease::lease_of;
use super::schema::{job_execution, launch, worker};
use super::{Connection, Db, Repository, Work};
use crate::ids::{JobExecutionId, LaunchId};
use crate::parameters::JobParameters;
use crate::repository::diesel::backend::{Backend, Sequence};
use crate::repository::diesel::one_of::none_of;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::sequences::Sequences as _;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::{
    TransactionError, concurrent_change, on_unique_violation,
};
use crate::repository::diesel::update::update;
use crate::repository::rules::{self, TakenAs};
use crate::repository::{
    ArchivedParameter, ClaimError, ClaimRequest, LaunchPhase, LaunchRow, LaunchStore, RepositoryError,
    Result, TakenLaunch, Target, WithdrawOutcome,
};
use crate::status::BatchStatus;

/// How long an ended launch is kept, in milliseconds.
const KEPT_FOR: i64 = 7 * 24 * 60 * 60 * 1_000;

/// The value of `is_open` until a launch has ended. At most one launch of an instance has it.
const OPEN: Option<i16> = Some(1);
const CLOSED: Option<i16> = None;

/// The id of a launch, with the phase and the worker that it had when it was found.
type Found = (i64, String, Option<String>);

/// The columns of a launch for the list.
#[derive(Queryable, Selectable)]
#[diesel(table_name = launch)]
struct Listed {
    launch_id: i64,
    job_name: String,
    queue_name: String,
    status: String,
    worker_name: Option<String>,
    job_execution_id: Option<i64>,
    message: String,
    submitted_at: i64,
}

impl LaunchStore for Repository {
    fn submit_launch(
        &self,
        request: &ClaimRequest<'_>,
        queue: &str,
        fingerprint: &str,
    ) -> Result<LaunchId, ClaimError> {
        let Target::Identified(key) = &request.target else {
            return Err(RepositoryError::Fault.into());
        };
        self.run(Tx::write("queue the launch"), |connection, _| {
            let now = database_now(connection)?;
            forget_old(connection, now)?;
            if let Some((id, phase)) = open_launch(connection, request.job_name, key)? {
                if phase == LaunchPhase::Queued {
                    put(connection, id, now, request, queue, fingerprint)?;
                }
                return Ok(LaunchId(id));
            }
            // The claim of the worker checks again; a launch that it would reject need not be queued.
            self.check_instance(connection, request, key)?;
            let id = Db::next_id(&self.pool, connection, Sequence::Execution)?;
            diesel::insert_into(launch::table)
                .values((
                    launch::launch_id.eq(id),
                    launch::job_name.eq(request.job_name),
                    launch::job_key.eq(key),
                    launch::queue_name.eq(queue),
                    launch::fingerprint.eq(fingerprint),
                    launch::parameters.eq(written(&request.parameters)),
                    launch::status.eq(LaunchPhase::Queued.as_str()),
                    launch::message.eq(""),
                    launch::available_at.eq(0),
                    launch::submitted_at.eq(now),
                    launch::changed_at.eq(now),
                    launch::is_open.eq(OPEN),
                ))
                .execute(connection)
                // Another process may queue the same instance at the same moment: the attempt after the conflict
                // finds its launch.
                .map_err(on_unique_violation)?;
            Ok(LaunchId(id))
        })
    }

    fn take_launches(&self, queue: &str, count: u32, except: &[String]) -> Result<Vec<TakenLaunch>> {
        // Without the right to write, because most calls find nothing; each launch is taken only if it is still
        // as found.
        let found = self.run(Tx::read("look for launches").once(), |connection, _| {
            let mut found = queued(connection, queue, count, except)?;
            found.extend(self.abandoned(connection, queue, except)?);
            Ok(found)
        })?;
        let mut taken = Vec::new();
        for one in found.into_iter().take(count as usize) {
            match self.take_launch(&one) {
                Ok(one) => taken.extend(one),
                // Those before it belong to this worker already.
                Err(error) if taken.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "cannot take more launches; trying again");
                    break;
                }
            }
        }
        Ok(taken)
    }

    fn requeue_launch(&self, id: LaunchId, wait: Duration, message: &str, is_running: bool) -> Result<bool> {
        self.run(Tx::write("queue the launch again"), |connection, in_doubt| {
            let now = database_now(connection)?;
            let own = launch::table
                .find(id.0)
                .filter(launch::worker_name.eq(self.owner.name()))
                .filter(launch::status.eq(LaunchPhase::Taken.as_str()));
            let execution: Option<Option<i64>> = own
                .select(launch::job_execution_id)
                .first(connection)
                .optional()?;
            let Some(execution) = execution else {
                // The first attempt may have been committed.
                return Ok(in_doubt);
            };
            // The execution then ends STOPPED for its operator: no other worker may continue it.
            if is_running && status_of(connection, execution)? == Some(BatchStatus::Stopping) {
                return Ok(false);
            }
            let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            let changed = update(own)
                .set((
                    launch::status.eq(LaunchPhase::Queued.as_str()),
                    launch::worker_name.eq(None::<String>),
                    launch::job_execution_id.eq(execution.filter(|_| is_running)),
                    launch::message.eq(message),
                    launch::available_at.eq(now.saturating_add(wait)),
                    launch::changed_at.eq(now),
                ))
                .execute(connection)?;
            Ok(changed > 0)
        })
    }

    fn end_launch(
        &self,
        id: LaunchId,
        phase: LaunchPhase,
        execution: Option<JobExecutionId>,
        message: &str,
    ) -> Result<()> {
        self.run(Tx::write("record the end of the launch"), |connection, _| {
            let now = database_now(connection)?;
            let own = launch::table
                .find(id.0)
                .filter(launch::worker_name.eq(self.owner.name()))
                .filter(launch::status.eq(LaunchPhase::Taken.as_str()));
            let ended = (
                launch::status.eq(phase.as_str()),
                launch::is_open.eq(CLOSED),
                launch::message.eq(message),
                launch::changed_at.eq(now),
            );
            // No row matches if the launch is another worker's, or if an earlier attempt was committed: both are
            // right.
            match execution {
                Some(execution) => update(own)
                    .set((ended, launch::job_execution_id.eq(execution.0)))
                    .execute(connection)?,
                None => update(own).set(ended).execute(connection)?,
            };
            Ok(())
        })
    }

    fn withdraw_launch(&self, id: LaunchId) -> Result<WithdrawOutcome> {
        self.run(Tx::write("withdraw the launch"), |connection, in_doubt| {
            let row: Option<(String, Option<i64>)> = launch::table
                .find(id.0)
                .select((launch::status, launch::job_execution_id))
                .first(connection)
                .optional()?;
            let Some((phase, execution)) = row else {
                return Ok(WithdrawOutcome::Unknown);
            };
            let status = status_of(connection, execution)?;
            let execution = execution.map(JobExecutionId).zip(status);
            let known_phase = LaunchPhase::from_repository(&phase);
            if let Some(outcome) = rules::not_withdrawn(known_phase, execution, in_doubt) {
                return Ok(outcome);
            }
            let now = database_now(connection)?;
            // A worker may take the launch between the query and this update.
            let unchanged = launch::table.find(id.0).filter(launch::status.eq(&phase));
            let withdrawn = (
                launch::status.eq(LaunchPhase::Withdrawn.as_str()),
                launch::is_open.eq(CLOSED),
                launch::changed_at.eq(now),
            );
            match update(unchanged).set(withdrawn).execute(connection)? {
                1 => Ok(match execution {
                    // A drained worker has handed it over, and it has not stopped yet.
                    Some((id, status)) if !status.is_final() => WithdrawOutcome::Runs(id),
                    _ => WithdrawOutcome::Withdrawn,
                }),
                _ => Err(concurrent_change()),
            }
        })
    }

    fn launches(&self) -> Result<Vec<LaunchRow>> {
        self.run(Tx::read("list the launches"), |connection, _| {
            let alive = self.living_workers(connection)?;
            let rows: Vec<Listed> = launch::table
                .order(launch::launch_id.asc())
                .select(Listed::as_select())
                .load(connection)?;
            let mut launches = Vec::new();
            for row in rows {
                let status = status_of(connection, row.job_execution_id)?;
                launches.push(LaunchRow {
                    id: LaunchId(row.launch_id),
                    job: row.job_name,
                    queue: row.queue_name,
                    phase: LaunchPhase::from_repository(&row.status).unwrap_or(LaunchPhase::Rejected),
                    is_worker_alive: row
                        .worker_name
                        .as_ref()
                        .is_some_and(|worker| alive.contains(worker)),
                    worker: row.worker_name,
                    execution: row.job_execution_id.map(JobExecutionId).zip(status),
                    message: row.message,
                    submitted: row.submitted_at,
                });
            }
            Ok(launches)
        })
    }
}

impl Repository {
    /// Rejects an instance that cannot run now.
    fn check_instance(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        key: &str,
    ) -> ClaimWork<()> {
        let Some(instance) = instance_with(connection, request.job_name, key)? else {
            return Ok(());
        };
        let instance = instance.id.0;
        let claimed = Claimed {
            instance,
            parameters: JobParameters::new(),
            previous: last_execution(connection, instance)?,
        };
        let lease = lease_of(connection, instance)?;
        self.check_may_run(connection, request, &claimed, lease.as_ref())
    }

    /// Takes a launch that was found, unless another worker was faster.
    fn take_launch(&self, (id, phase, worker): &Found) -> Result<Option<TakenLaunch>> {
        self.run(Tx::write("take a launch").once(), |connection, in_doubt| {
            let now = database_now(connection)?;
            let row = launch::table.find(id).filter(launch::status.eq(phase));
            let taken = (
                launch::status.eq(LaunchPhase::Taken.as_str()),
                launch::worker_name.eq(self.owner.name()),
                launch::changed_at.eq(now),
            );
            // Two workers may take over the launch of a dead one: the second does not find the dead worker's name.
            let changed = match worker {
                Some(worker) => update(row.filter(launch::worker_name.eq(worker)))
                    .set(taken)
                    .execute(connection)?,
                None => update(row.filter(launch::worker_name.is_null()))
                    .set(taken)
                    .execute(connection)?,
            };
            // The first attempt may have been committed.
            if changed == 0 && !(in_doubt && self.has_taken(connection, *id)?) {
                return Ok(None);
            }
            let (job, parameters, fingerprint, execution): (String, String, String, Option<i64>) =
                launch::table
                    .find(id)
                    .select((
                        launch::job_name,
                        launch::parameters,
                        launch::fingerprint,
                        launch::job_execution_id,
                    ))
                    .first(connection)?;
            let was_queued = phase == LaunchPhase::Queued.as_str();
            let status = status_of(connection, execution)?;
            match rules::taken_as(was_queued, status, execution.is_some()) {
                TakenAs::New => {}
                TakenAs::HandedOver => {
                    update(launch::table.find(id))
                        .set(launch::job_execution_id.eq(None::<i64>))
                        .execute(connection)?;
                }
                TakenAs::Ended => {
                    update(launch::table.find(id))
                        .set((
                            launch::status.eq(LaunchPhase::Ended.as_str()),
                            launch::is_open.eq(CLOSED),
                            // The worker that ran the job, instead of this one.
                            launch::worker_name.eq(worker),
                            launch::message.eq(""),
                        ))
                        .execute(connection)?;
                    return Ok(None);
                }
            }
            Ok(Some(TakenLaunch {
                id: LaunchId(*id),
                job,
                parameters: read(&parameters),
                fingerprint,
            }))
        })
    }

    /// Returns the launches of a queue whose workers are dead.
    fn abandoned(
        &self,
        connection: &mut Connection,
        queue: &str,
        except: &[String],
    ) -> QueryResult<Vec<Found>> {
        let taken: Vec<Found> = launch::table
            .filter(launch::queue_name.eq(queue))
            .filter(launch::status.eq(LaunchPhase::Taken.as_str()))
            .filter(none_of(launch::fingerprint, except))
            .order(launch::launch_id.asc())
            .select((launch::launch_id, launch::status, launch::worker_name))
            .load(connection)?;
        if taken.is_empty() {
            return Ok(taken);
        }
        let alive = self.living_workers(connection)?;
        let is_dead = |(_, _, worker): &Found| !worker.as_ref().is_some_and(|worker| alive.contains(worker));
        Ok(taken.into_iter().filter(is_dead).collect())
    }

    fn living_workers(&self, connection: &mut Connection) -> QueryResult<Vec<String>> {
        let now = database_now(connection)?;
        let mut workers: Vec<String> = worker::table
            .filter(worker::expires_at.ge(now))
            .select(worker::worker_name)
            .load(connection)?;
        // On this host a process shows at once that it has ended.
        workers.retain(|worker| !self.owner.has_ended(worker));
        Ok(workers)
    }

    fn has_taken(&self, connection: &mut Connection, id: i64) -> QueryResult<bool> {
        let own = launch::table
            .find(id)
            .filter(launch::worker_name.eq(self.owner.name()))
            .filter(launch::status.eq(LaunchPhase::Taken.as_str()))
            .select(launch::launch_id);
        Ok(own.first::<i64>(connection).optional()?.is_some())
    }

    /// Records the job execution of a launch, in the transaction that creates it. Rejects it if the launch is not this worker's any more.
    pub(super) fn bind_launch(
        &self,
        connection: &mut Connection,
        id: LaunchId,
        execution: i64,
    ) -> ClaimWork<()> {
        let own = launch::table
            .find(id.0)
            .filter(launch::worker_name.eq(self.owner.name()))
            .filter(launch::status.eq(LaunchPhase::Taken.as_str()));
        let bound = update(own)
            .set((
                launch::job_execution_id.eq(execution),
                // Why it did not run before.
                launch::message.eq(""),
            ))
            .execute(connection)?;
        match bound {
            1 => Ok(()),
            _ => Err(TransactionError::Rejected(ClaimError::TakenOver)),
        }
    }
}

fn database_now(connection: &mut Connection) -> QueryResult<i64> {
    diesel::select(Db::now()).get_result(connection)
}

/// Returns the launch of an instance that is queued, or that a worker has taken and whose execution has not ended. Closes one whose
/// execution has: its worker has not recorded that yet.
fn open_launch<E: From<RepositoryError>>(
    connection: &mut Connection,
    job: &str,
    key: &str,
) -> Work<Option<(i64, LaunchPhase)>, E> {
    let row: Option<(i64, String, Option<i64>)> = launch::table
        .filter(launch::job_name.eq(job))
        .filter(launch::job_key.eq(key))
        .filter(launch::is_open.eq(OPEN))
        .select((launch::launch_id, launch::status, launch::job_execution_id))
        .first(connection)
        .optional()?;
    let Some((id, phase, execution)) = row else {
        return Ok(None);
    };
    if phase == LaunchPhase::Queued.as_str() {
        return Ok(Some((id, LaunchPhase::Queued)));
    }
    // Without an execution, its worker has not claimed the instance yet.
    if status_of(connection, execution)?.is_none_or(|status| !status.is_final()) {
        return Ok(Some((id, LaunchPhase::Taken)));
    }
    let taken = launch::table.find(id).filter(launch::status.eq(&phase));
    let ended = (
        launch::status.eq(LaunchPhase::Ended.as_str()),
        launch::is_open.eq(CLOSED),
    );
    match update(taken).set(ended).execute(connection)? {
        1 => Ok(None),
        _ => Err(concurrent_change()),
    }
}

/// Replaces a launch that is queued.
fn put(
    connection: &mut Connection,
    id: i64,
    now: i64,
    request: &ClaimRequest<'_>,
    queue: &str,
    fingerprint: &str,
) -> QueryResult<()> {
    update(launch::table.find(id))
        .set((
            launch::queue_name.eq(queue),
            launch::fingerprint.eq(fingerprint),
            launch::parameters.eq(written(&request.parameters)),
            launch::job_execution_id.eq(None::<i64>),
            launch::message.eq(""),
            // The pause after an earlier attempt does not apply to a new request.
            launch::available_at.eq(0),
            launch::changed_at.eq(now),
        ))
        .execute(connection)
        .map(drop)
}

/// Removes the launches that have ended long ago.
fn forget_old(connection: &mut Connection, now: i64) -> QueryResult<()> {
    // A launch that waits is never forgotten, however long.
    let phases = [LaunchPhase::Queued, LaunchPhase::Taken].map(LaunchPhase::as_str);
    let old = launch::table
        .filter(none_of(launch::status, phases))
        .filter(launch::changed_at.lt(now.saturating_sub(KEPT_FOR)));
    diesel::delete(old).execute(connection).map(drop)
}

/// Returns the launches of a queue that wait for a worker.
fn queued(
    connection: &mut Connection,
    queue: &str,
    count: u32,
    except: &[String],
) -> QueryResult<Vec<Found>> {
    let now = database_now(connection)?;
    launch::table
        .filter(launch::queue_name.eq(queue))
        .filter(launch::status.eq(LaunchPhase::Queued.as_str()))
        .filter(launch::available_at.le(now))
        .filter(none_of(launch::fingerprint, except))
        .order(launch::launch_id.asc())
        .limit(i64::from(count))
        .select((launch::launch_id, launch::status, launch::worker_name))
        .load(connection)
}

fn status_of(connection: &mut Connection, execution: Option<i64>) -> QueryResult<Option<BatchStatus>> {
    let Some(execution) = execution else {
        return Ok(None);
    };
    let status: Option<Option<String>> = job_execution::table
        .find(execution)
        .select(job_execution::status)
        .first(connection)
        .optional()?;
    Ok(BatchStatus::from_repository(
        status.flatten().as_deref().unwrap_or_default(),
    ))
}

fn written(parameters: &JobParameters) -> String {
    serde_json::to_string(&ArchivedParameter::all(parameters)).unwrap_or_default()
}

fn read(text: &str) -> Result<JobParameters, String> {
    let parameters: Vec<ArchivedParameter> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let with =
        |all: JobParameters, one: ArchivedParameter| all.with_parameter(one.name, one.value, one.identifying);
    Ok(parameters.into_iter().fold(JobParameters::new(), with))
}
