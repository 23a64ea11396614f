//! Closing the executions of a dead owner.

use diesel::prelude::*;

use super::lease::{LeaseRow, RELEASED};
use super::rows::status_of;
use super::schema::{job_execution, partition_lease, step_execution};
use super::{Connection, Db, Repository};
use crate::ids::JobExecutionId;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::one_of::one_of;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::diesel::update::update;
use crate::repository::rules::{self, OPEN as OPEN_STATUSES, stored_message};
use crate::repository::{Ending, RepositoryError, Result};
use crate::status::BatchStatus;

/// Updates an execution or step execution that its owner cannot end any more.
macro_rules! closed {
    ($table:ident, $id:expr, $ended:expr, $closing:expr, $message:expr) => {
        update($table::table.find($id)).set((
            // The locks of the caller replace the comparison of VERSION; the dead owner will not find the one it
            // wrote.
            $table::version.eq($table::version + 1),
            $table::status.eq($closing.status.as_str()),
            $table::exit_code.eq(&$closing.exit_status),
            $table::exit_message.eq($message),
            $table::end_time.eq($ended),
            $table::last_updated.eq($ended),
        ))
    };
}

/// The statuses of executions that have not ended.
pub(super) const OPEN: [&str; 3] = [
    OPEN_STATUSES[0].as_str(),
    OPEN_STATUSES[1].as_str(),
    OPEN_STATUSES[2].as_str(),
];

/// Id, creation, start, status, and the cause of the end if its process has recorded one.
type OpenExecution = (
    i64,
    DbTimestamp,
    Option<DbTimestamp>,
    Option<String>,
    Option<String>,
);

/// Id, start, commits and status of a step execution, and the status of its job execution.
type ClosedStep = (
    i64,
    Option<DbTimestamp>,
    Option<i64>,
    Option<String>,
    Option<String>,
);

impl Repository {
    /// Closes the open executions and step executions of an instance whose owner is dead. VERSION grows, so that the
    /// repository rejects what the owner may still write. `cause` is the reason why they cannot be resumed.
    // Spec: OP-35
    pub(super) fn close_open_executions<E: From<RepositoryError>>(
        &self,
        connection: &mut Connection,
        instance: i64,
        lease: Option<&LeaseRow>,
        cause: Option<&str>,
    ) -> Result<Vec<JobExecutionId>, TransactionError<E>> {
        // Before any row is locked: the owner may be suspended in a transaction, and the lock would wait for it.
        self.end_sessions_of_dead(connection, instance, lease)?;
        // Before the steps are read: a step that its owner is just creating is either found below or rejected.
        Db::lock_executions(connection, instance)?;
        let held = lease.filter(|row| !row.is_free());
        let owner = held.map_or("unknown", |row| row.owner.as_str());
        let noted = self.owner.note_of(owner);
        let executions: Vec<OpenExecution> = job_execution::table
            .filter(job_execution::job_instance_id.eq(instance))
            .filter(one_of(job_execution::status, OPEN))
            .select((
                job_execution::job_execution_id,
                job_execution::create_time,
                job_execution::start_time,
                job_execution::status,
                job_execution::exit_message,
            ))
            .load(connection)?;
        // Before the job executions: only their open rows show whether the steps were to stop.
        self.close_open_steps(connection, instance, owner)?;
        let mut closed = Vec::new();
        for (id, created, started, status, recorded) in executions {
            let closing = closing_of(status.as_deref(), owner)
                .map_err(|error| TransactionError::Rejected(error.into()))?;
            let closing = rules::explained(closing, noted.as_deref().or(recorded.as_deref()), cause);
            // The clock of the dead owner may have been ahead: nothing ends before it has started.
            let ended = self.now().max(started.unwrap_or(created));
            let message = stored_message(&closing.message, self.settings.format.max_varchar);
            closed!(job_execution, id, ended, closing, message).execute(connection)?;
            closed.push(JobExecutionId(id));
        }
        let ids = closed.iter().map(|id| id.0);
        // Worker processes of these executions then fail to renew their leases, and stop.
        update(partition_lease::table.filter(one_of(partition_lease::job_execution_id, ids)))
            .set(partition_lease::expires_at.eq(RELEASED))
            .execute(connection)?;
        Ok(closed)
    }

    /// Closes the open step executions of an instance, as their job executions are closed.
    fn close_open_steps(&self, connection: &mut Connection, instance: i64, owner: &str) -> QueryResult<()> {
        let steps: Vec<ClosedStep> = step_execution::table
            .inner_join(job_execution::table)
            .filter(job_execution::job_instance_id.eq(instance))
            .filter(one_of(step_execution::status, OPEN))
            .select((
                step_execution::step_execution_id,
                step_execution::start_time,
                step_execution::commit_count,
                step_execution::status,
                // The row of a step never shows STOPPING; the row of its job does.
                job_execution::status,
            ))
            .load(connection)?;
        for (id, started, commits, status, job_status) in steps {
            let closing = closing_of(job_status.as_deref(), owner).unwrap_or_else(|_| rules::crashed(owner));
            let status = status_of(status, || format!("step execution {id}")).unwrap_or(BatchStatus::Unknown);
            let ended = rules::end_time(status, commits.unwrap_or_default(), started, Some(self.now()));
            self.close_step(connection, id, ended, &closing)?;
        }
        Ok(())
    }

    /// Ends the sessions of a dead owner and of the workers of its partitions that do not renew their leases. Their processes
    /// may be suspended, or on a host that is cut off, with locked rows.
    fn end_sessions_of_dead(
        &self,
        connection: &mut Connection,
        instance: i64,
        lease: Option<&LeaseRow>,
    ) -> QueryResult<()> {
        let Some(lease) = lease.filter(|lease| !lease.is_free()) else {
            return Ok(());
        };
        let now: i64 = diesel::select(Db::now()).get_result(connection)?;
        let workers: Vec<String> = partition_lease::table
            .filter(partition_lease::job_execution_id.eq(lease.job_execution_id))
            .filter(partition_lease::expires_at.ne(RELEASED))
            // A worker that renews its lease is alive, and the same sessions serve its other partitions.
            .filter(partition_lease::expires_at.lt(now))
            .select(partition_lease::owner)
            .distinct()
            .load(connection)?;
        for owner in workers.iter().chain([&lease.owner]) {
            // Its own sessions are not silent.
            if owner != self.owner.name() {
                tracing::debug!(instance, owner, "ending the sessions of a dead owner");
                Db::end_sessions(connection, owner)?;
            }
        }
        Ok(())
    }

    /// Closes a step execution.
    pub(super) fn close_step(
        &self,
        connection: &mut Connection,
        id: i64,
        ended: Option<DbTimestamp>,
        closing: &Ending,
    ) -> QueryResult<usize> {
        let message = stored_message(&closing.message, self.settings.format.max_varchar);
        closed!(step_execution, id, ended, closing, message).execute(connection)
    }
}

fn closing_of(status: Option<&str>, owner: &str) -> Result<Ending> {
    let row = || "a job execution".to_owned();
    let status = status_of(status.map(str::to_owned), row)?;
    rules::closing(status, owner).ok_or_else(|| RepositoryError::Corrupt {
        row: row(),
        problem: format!("no process runs it, but it has batch status {status}").into(),
    })
}
