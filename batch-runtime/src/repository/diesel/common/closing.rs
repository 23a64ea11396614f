//! Executions that somebody else than their runner ends, or asks to end.

use diesel::prelude::*;

use super::lease::{LeaseRow, NOBODY, lease_of};
use super::queries::{execution_in, last_execution};
use super::schema::{batch_job_execution, batch_step_execution};
use super::{Connection, Moment, Repository, RunQueryDsl, TransactionError, lock_executions, lock_instance};
use crate::ids::JobExecutionId;
use crate::repository::{AbandonOutcome, ClaimError, DeathOutcome, RepositoryError, StopOutcome};
use crate::status::{BatchStatus, Event};

/// Exit status of an execution whose process died.
const CRASHED: &str = "CRASHED";

impl Repository {
    /// Closes the executions of an instance whose owner is dead, and every step execution of the instance that is open.
    /// VERSION grows, so that nothing which the owner might still write is accepted. Spec: OP-35
    pub(super) fn close_open_executions<E: From<RepositoryError>>(
        &self,
        connection: &mut Connection,
        instance: i64,
        lease: Option<&LeaseRow>,
    ) -> Result<Vec<JobExecutionId>, TransactionError<E>> {
        let open =
            [BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping].map(BatchStatus::as_str);
        // Before the steps are looked for: a step that its owner is just beginning is either seen below or not begun.
        lock_executions(connection, instance)?;
        let owner = lease.map_or(NOBODY, |row| row.owner.as_str());
        let owner = if owner == NOBODY { "unknown" } else { owner };
        let executions: Vec<(i64, Moment, Option<Moment>, Option<String>)> = batch_job_execution::table
            .filter(batch_job_execution::job_instance_id.eq(instance))
            .filter(batch_job_execution::status.eq_any(open))
            .select((
                batch_job_execution::job_execution_id,
                batch_job_execution::create_time,
                batch_job_execution::start_time,
                batch_job_execution::status,
            ))
            .load(connection)?;
        let steps: Vec<(i64, Moment, Option<String>)> = batch_step_execution::table
            .inner_join(batch_job_execution::table)
            .filter(batch_job_execution::job_instance_id.eq(instance))
            .filter(batch_step_execution::status.eq_any(open))
            .select((
                batch_step_execution::step_execution_id,
                batch_step_execution::start_time,
                // A step's own row never says STOPPING; its job's does.
                batch_job_execution::status,
            ))
            .load(connection)?;
        for (id, began, job_status) in steps {
            let closing =
                Closing::of(job_status.as_deref(), owner).unwrap_or_else(|_| Closing::crashed(owner));
            // The dead owner's clock may have been ahead.
            let now = self.now().max(began.0);
            diesel::update(batch_step_execution::table.find(id))
                .set((
                    batch_step_execution::version.eq(batch_step_execution::version + 1),
                    batch_step_execution::status.eq(closing.status.as_str()),
                    batch_step_execution::exit_code.eq(closing.exit_code),
                    batch_step_execution::exit_message.eq(&closing.message),
                    batch_step_execution::end_time.eq(Moment(now)),
                    batch_step_execution::last_updated.eq(Moment(now)),
                ))
                .execute(connection)?;
        }
        let mut closed = Vec::new();
        for (id, created, began, status) in executions {
            let closing = Closing::of(status.as_deref(), owner)
                .map_err(|error| TransactionError::Refused(error.into()))?;
            let now = self.now().max(began.unwrap_or(created).0);
            diesel::update(batch_job_execution::table.find(id))
                .set((
                    batch_job_execution::version.eq(batch_job_execution::version + 1),
                    batch_job_execution::status.eq(closing.status.as_str()),
                    batch_job_execution::exit_code.eq(closing.exit_code),
                    batch_job_execution::exit_message.eq(&closing.message),
                    batch_job_execution::end_time.eq(Moment(now)),
                    batch_job_execution::last_updated.eq(Moment(now)),
                ))
                .execute(connection)?;
            closed.push(JobExecutionId(id));
        }
        Ok(closed)
    }

    pub(super) fn give_up_execution(
        &self,
        id: JobExecutionId,
    ) -> Result<Option<AbandonOutcome>, RepositoryError> {
        self.pool.write("abandon the job execution", |connection| {
            let Some(execution) = execution_in(connection, id.0)? else {
                return Ok(None);
            };
            let instance = execution.instance_id.0;
            lock_instance(connection, instance)?;
            let lease = lease_of(connection, instance)?;
            let newest = last_execution(connection, instance)?;
            let running = self.running_execution(connection, newest.as_ref(), lease.as_ref())?;
            if let Some(ClaimError::Running { owner, .. }) = running {
                return Ok(Some(AbandonOutcome::Running { owner }));
            }
            self.close_open_executions::<RepositoryError>(connection, instance, lease.as_ref())?;
            if let Some(row) = lease.as_ref().filter(|row| !row.is_free()) {
                Self::void_lease(connection, instance, row)?;
            }
            let open = batch_job_execution::table
                .find(id.0)
                .filter(batch_job_execution::status.ne(BatchStatus::Completed.as_str()));
            let changed = diesel::update(open)
                .set((
                    batch_job_execution::version.eq(batch_job_execution::version + 1),
                    batch_job_execution::status.eq(BatchStatus::Abandoned.as_str()),
                    batch_job_execution::last_updated.eq(Moment(self.now())),
                ))
                .execute(connection)?;
            Ok(Some(if changed == 1 {
                AbandonOutcome::Abandoned
            } else {
                AbandonOutcome::Complete
            }))
        })
    }

    pub(super) fn ask_to_stop(&self, id: JobExecutionId) -> Result<Option<StopOutcome>, RepositoryError> {
        self.pool.write_first("request the stop", |connection, in_doubt| {
            let Some(execution) = execution_in(connection, id.0)? else {
                return Ok(None);
            };
            let instance = execution.instance_id.0;
            lock_instance(connection, instance)?;
            lock_executions(connection, instance)?;
            // What was read before the locks may be old.
            let Some(execution) = execution_in(connection, id.0)? else {
                return Ok(None);
            };
            let Ok(stopping) = execution.status.after(Event::RequestStop) else {
                return Ok(Some(match in_doubt && execution.status == BatchStatus::Stopped {
                    true => StopOutcome::Closed,
                    false => StopOutcome::NotRunning,
                }));
            };
            if execution.status != stopping {
                let now = self.now();
                diesel::update(batch_job_execution::table.find(id.0))
                    .set((
                        batch_job_execution::version.eq(execution.version + 1),
                        batch_job_execution::status.eq(stopping.as_str()),
                        batch_job_execution::last_updated.eq(Moment(now)),
                    ))
                    .execute(connection)?;
            }
            let lease = lease_of(connection, instance)?;
            // Without a lease of its own it is another program's execution, which looks at its row as ours does.
            let Some(row) = lease.as_ref().filter(|row| row.job_execution_id == id.0) else {
                return Ok(Some(StopOutcome::Requested));
            };
            if self.is_held(connection, row)? {
                return Ok(Some(StopOutcome::Requested));
            }
            self.close_open_executions::<RepositoryError>(connection, instance, lease.as_ref())?;
            Self::void_lease(connection, instance, row)?;
            Ok(Some(StopOutcome::Closed))
        })
    }

    /// Closes an execution that nobody holds, on somebody's word that its process is dead.
    pub(super) fn close_dead(&self, id: JobExecutionId) -> Result<Option<DeathOutcome>, RepositoryError> {
        self.pool.write("close the dead job execution", |connection| {
            let Some(execution) = execution_in(connection, id.0)? else {
                return Ok(None);
            };
            let instance = execution.instance_id.0;
            lock_instance(connection, instance)?;
            let lease = lease_of(connection, instance)?;
            if let Some(row) = &lease
                && self.is_held(connection, row)?
            {
                let owner = self.described_owner(connection, row)?;
                return Ok(Some(DeathOutcome::Running { owner }));
            }
            lock_executions(connection, instance)?;
            // What was read before the locks may be old; and of another execution nobody has said that it is dead.
            let newest = last_execution(connection, instance)?;
            if newest.is_none_or(|newest| newest.id != id || newest.status.is_final()) {
                return Ok(Some(DeathOutcome::Ended));
            }
            self.close_open_executions::<RepositoryError>(connection, instance, lease.as_ref())?;
            if let Some(row) = lease.as_ref().filter(|row| !row.is_free()) {
                Self::void_lease(connection, instance, row)?;
            }
            Ok(Some(DeathOutcome::Closed))
        })
    }
}

/// How an execution ends whose owner was found dead.
struct Closing {
    status: BatchStatus,
    exit_code: &'static str,
    message: String,
}

impl Closing {
    fn of(status: Option<&str>, owner: &str) -> Result<Self, RepositoryError> {
        let corrupt = |problem| RepositoryError::Corrupt {
            row: "a job execution".into(),
            problem,
        };
        let status = super::rows::status_of(status.map(str::to_owned), || "a job execution".into())?;
        match status
            .after(Event::Crash)
            .map_err(|illegal| corrupt(illegal.to_string()))?
        {
            status @ BatchStatus::Stopped => Ok(Self {
                status,
                exit_code: status.as_str(),
                message: format!("its runtime was dead when the stop was recorded (owner {owner})"),
            }),
            _ => Ok(Self::crashed(owner)),
        }
    }

    fn crashed(owner: &str) -> Self {
        let message = format!("the runtime that ran it did not record its end (owner {owner})");
        Self {
            status: BatchStatus::Failed,
            exit_code: CRASHED,
            message,
        }
    }
}
