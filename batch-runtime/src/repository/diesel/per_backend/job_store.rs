//! Job executions: their start and end, their lease, the states of their elements.

use std::time::Duration;

use diesel::prelude::*;

use super::contexts::{change_job_data, job_state_in, locked_job_state, save_job_state};
use super::executions::execution_in;
use super::lease::RELEASED;
use super::schema::{instance_lease, job_execution, step_execution};
use super::{Connection, Db, Repository, Work, fenced};
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::one_of::one_of;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::update::update;
use crate::repository::rules::{self, stored_message};
use crate::repository::{
    Claim, ClaimError, ClaimRequest, Connector, DataChanges, ElementState, Ending, JobState, JobStore,
    KeptState, Lease, RepositoryFormat, Result, Signals, TurnOutcome,
};
use crate::status::BatchStatus;

impl JobStore for Repository {
    fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError> {
        self.claim_instance(request)
    }

    fn take_turn(&self, lease: &Lease, job_name: &str) -> Result<TurnOutcome> {
        self.take_turn_of_job(lease, job_name)
    }

    fn pass_turn(&self, execution: JobExecutionId) -> Result<Option<Vec<JobExecutionId>>> {
        self.pass_turn_of(execution)
    }

    fn begin_job(&self, lease: &Lease, execution: &mut JobExecution) -> Result<bool> {
        const ACTION: &str = "record the start of the job execution";
        let mut started = execution.clone();
        rules::begin_job(&mut started, self.now_as_read());
        let now = self.column(started.last_updated);
        let is_started = self.run(Tx::write(ACTION), |connection, in_doubt| {
            let row = job_execution::table
                .find(execution.id.0)
                // A stop request or a takeover has changed VERSION since this runner wrote it.
                .filter(job_execution::version.eq(execution.version));
            let changed = update(row)
                .set((
                    job_execution::version.eq(started.version),
                    job_execution::status.eq(started.status.as_str()),
                    job_execution::start_time.eq(now),
                    job_execution::last_updated.eq(now),
                ))
                .execute(connection)?;
            // The row may have the VERSION of an earlier attempt, which was committed although its connection was
            // lost.
            if in_doubt && changed == 0 && is_as_written(connection, &started, now)? {
                return Ok(true);
            }
            if changed == 0 {
                self.adopt_stop(connection, lease, execution, ACTION)?;
            }
            Ok(changed == 1)
        })?;
        if is_started {
            *execution = started;
        }
        Ok(is_started)
    }

    fn end_job(&self, lease: &Lease, execution: &mut JobExecution, ending: &Ending) -> Result<bool> {
        const ACTION: &str = "record the end of the job execution";
        let mut ended = execution.clone();
        rules::end_job(
            &mut ended,
            ending,
            self.now_as_read(),
            self.settings.format.max_varchar,
        );
        let now = self.column(ended.last_updated);
        let is_ended = self.run(Tx::write(ACTION), |connection, in_doubt| {
            let row = job_execution::table
                .find(execution.id.0)
                .filter(job_execution::version.eq(execution.version));
            let changed = update(row)
                .set((
                    job_execution::version.eq(ended.version),
                    job_execution::status.eq(ended.status.as_str()),
                    job_execution::exit_code.eq(&ended.exit_status),
                    job_execution::exit_message.eq(&ended.exit_message),
                    job_execution::end_time.eq(now),
                    job_execution::last_updated.eq(now),
                ))
                .execute(connection)?;
            // As in `begin_job`; then the lease is released and the notification queued as well, in the same commit.
            if in_doubt && changed == 0 && is_as_written(connection, &ended, now)? {
                return Ok(true);
            }
            if changed == 0 {
                self.adopt_stop(connection, lease, execution, ACTION)?;
                return Ok(false);
            }
            // A lease can be lost while the row is unchanged. The error rolls the end back: the next claim
            // records another one.
            if !self.release_lease_in(connection, lease)? {
                return Err(fenced(ACTION));
            }
            // In the transaction of the end, so that no crash loses the notification.
            self.notify_of_end(connection, execution, ending.status)?;
            // In the commit of the end: a restart after it must find the position that the `stop` element has set.
            if let Some(restart) = &ending.restart {
                let state = JobState {
                    restart: Some(restart.clone()),
                    ..locked_job_state(connection, execution.id)?
                };
                save_job_state(connection, execution.id, &state)?;
            }
            Ok(true)
        })?;
        if is_ended {
            *execution = ended;
        }
        Ok(is_ended)
    }

    fn kept_state(&self, lease: &Lease) -> Result<KeptState> {
        self.run(
            Tx::read("read the state that the job has kept"),
            |connection, _| {
                let executions: Vec<(i64, Option<String>)> = job_execution::table
                    .filter(job_execution::job_instance_id.eq(lease.instance_id.0))
                    .order(job_execution::job_execution_id.asc())
                    .select((job_execution::job_execution_id, job_execution::status))
                    .load(connection)?;
                let mut kept = KeptState::default();
                for (id, status) in executions {
                    let is_stopped = status.as_deref() == Some(BatchStatus::Stopped.as_str());
                    let is_before = id < lease.execution_id.0;
                    kept.add(job_state_in(connection, id)?, is_before, is_stopped);
                }
                Ok(kept)
            },
        )
    }

    fn save_job_data(&self, lease: &Lease, changes: &DataChanges) -> Result<()> {
        const ACTION: &str = "record the data of the job";
        self.run(Tx::write(ACTION), |connection, _| {
            // The row has no VERSION to compare, so the lease itself is checked.
            Db::lock_executions(connection, lease.instance_id.0)?;
            self.ensure_held(connection, lease, ACTION)?;
            change_job_data(connection, lease.execution_id, changes)
        })
    }

    fn save_element_state(&self, lease: &Lease, element: &str, state: &ElementState) -> Result<()> {
        const ACTION: &str = "record the state of a parallel element";
        self.run(Tx::write(ACTION), |connection, _| {
            // Worker processes save states of the same execution. The row has no VERSION to compare, so the lease itself is
            // checked.
            Db::lock_executions(connection, lease.instance_id.0)?;
            self.ensure_held(connection, lease, ACTION)?;
            let mut stored = locked_job_state(connection, lease.execution_id)?;
            stored.restart = None;
            stored.elements.insert(element.to_owned(), state.clone());
            save_job_state(connection, lease.execution_id, &stored)
        })
    }

    fn renew_lease(&self, lease: &Lease) -> Result<bool> {
        self.owner.restore_lock();
        // The keeper of the lease calls again, and threads that wait to write must not let the lease expire.
        self.run(
            Tx::write("renew the lease").once().with_priority(),
            |connection, _| Ok(self.renew_lease_in(connection, lease)?),
        )
    }

    fn release_lease(&self, lease: &Lease) -> Result<()> {
        // The caller tries again, and its keeper must not wait here while other leases have to be renewed.
        self.run(Tx::write("release the lease").once(), |connection, _| {
            self.release_lease_in(connection, lease)?;
            Ok(())
        })
    }

    fn record_exit(&self, cause: &str) -> Result<()> {
        if self.owner.note(cause) {
            return Ok(());
        }
        self.run(
            Tx::write("record the end of the process").once().with_priority(),
            |connection, _| {
                let held: Vec<i64> = instance_lease::table
                    .filter(instance_lease::owner.eq(self.owner.name()))
                    // A released lease still names this owner, but its execution has ended and keeps its message.
                    .filter(instance_lease::expires_at.ne(RELEASED))
                    .select(instance_lease::job_execution_id)
                    .load(connection)?;
                update(job_execution::table.filter(one_of(job_execution::job_execution_id, held)))
                    .set((
                        job_execution::version.eq(job_execution::version + 1),
                        job_execution::exit_message
                            .eq(stored_message(cause, self.settings.format.max_varchar)),
                        job_execution::last_updated.eq(self.now()),
                    ))
                    .execute(connection)?;
                Ok(())
            },
        )
    }

    fn close(&self) {
        self.close_owner();
    }

    fn lease_time(&self) -> Duration {
        self.lease_time
    }

    fn owner_name(&self) -> &str {
        self.owner.name()
    }

    fn signals(&self, executions: &[JobExecutionId], partitions: &[StepExecutionId]) -> Result<Signals> {
        self.run(Tx::read("look for stop requests").once(), |connection, _| {
            let stopping = BatchStatus::Stopping.as_str();
            // Spring Batch 6 does not ask for the end of an execution, but records it. The next write finds that.
            let stopped = BatchStatus::Stopped.as_str();
            let ids = executions.iter().map(|id| id.0);
            let executions: Vec<i64> = job_execution::table
                .filter(one_of(job_execution::job_execution_id, ids))
                .filter(
                    job_execution::status
                        .eq(stopping)
                        .or(job_execution::status.eq(stopped)),
                )
                .select(job_execution::job_execution_id)
                .load(connection)?;
            let mut found = Signals {
                executions: executions.into_iter().map(JobExecutionId).collect(),
                partitions: Vec::new(),
            };
            if !partitions.is_empty() {
                let ids = partitions.iter().map(|id| id.0);
                let partitions: Vec<i64> = step_execution::table
                    .filter(one_of(step_execution::step_execution_id, ids))
                    .filter(step_execution::status.eq(stopping))
                    .select(step_execution::step_execution_id)
                    .load(connection)?;
                found.partitions = partitions.into_iter().map(StepExecutionId).collect();
            }
            Ok(found)
        })
    }

    fn connector(&self) -> Connector {
        self.pool.connector()
    }

    fn format(&self) -> &RepositoryFormat {
        &self.settings.format
    }
}

impl Repository {
    /// Handles a changed VERSION of the job row: either a stop was requested, which the runner adopts, or another runtime has
    /// taken the execution over.
    // Spec: REPO-17
    fn adopt_stop(
        &self,
        connection: &mut Connection,
        lease: &Lease,
        execution: &mut JobExecution,
        action: &'static str,
    ) -> Work<()> {
        let current = execution_in(connection, execution.id.0)?.ok_or_else(|| fenced(action))?;
        if !rules::is_stop_request(current.status, self.holds(connection, lease)?) {
            return Err(fenced(action));
        }
        *execution = current;
        Ok(())
    }
}

/// Returns whether a row is as this runner has written it in a transaction whose outcome is unknown. Whoever closes the
/// execution of a dead runner writes another time or status.
fn is_as_written(connection: &mut Connection, written: &JobExecution, now: DbTimestamp) -> QueryResult<bool> {
    let row = job_execution::table
        .find(written.id.0)
        .filter(job_execution::version.eq(written.version))
        .filter(job_execution::status.eq(written.status.as_str()))
        .filter(job_execution::last_updated.eq(now));
    Ok(row.count().get_result::<i64>(connection)? == 1)
}
