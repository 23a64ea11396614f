//! Partitions that worker processes claim: a lease for each, beside that of the job.

use diesel::prelude::*;

use super::closing::Closing;
use super::contexts::step_state_in;
use super::lease::{RELEASED, lease_of};
use super::rows::StepRow;
use super::schema::{job_execution, partition_lease, step_execution};
use super::{Connection, Db, Repository, Work, rejected};
use crate::execution::StepExecution;
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::pool::unknown_outcome;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::{ClaimedPartition, HolderState, Lease, LeaseKey, PartitionState};
use crate::status::BatchStatus;

impl Repository {
    /// Implements `StepStore::claim_partition`. A claim of unknown outcome belongs to no worker: its lease expires.
    pub(super) fn claim_partition_in(
        &self,
        connection: &mut Connection,
        id: StepExecutionId,
        in_doubt: bool,
    ) -> Work<Option<ClaimedPartition>> {
        if in_doubt {
            return Err(TransactionError::Database(unknown_outcome()));
        }
        let Some(step) = step_in(connection, id)? else {
            return Ok(None);
        };
        let execution = step.job_execution_id.0;
        Db::share_execution(connection, execution)?;
        Db::lock_step(connection, id.0)?;
        let instance: i64 = job_execution::table
            .find(execution)
            .select(job_execution::job_instance_id)
            .first(connection)?;
        let (Some(mut step), Some(job)) = (step_in(connection, id)?, lease_of(connection, instance)?) else {
            return Ok(None);
        };
        if step.status != BatchStatus::Starting || job.job_execution_id != execution || job.is_free() {
            return Ok(None);
        }
        let now = self.now().max(self.column(step.started));
        diesel::update(step_execution::table.find(id.0))
            .set((
                step_execution::version.eq(step.version + 1),
                step_execution::status.eq(BatchStatus::Started.as_str()),
                step_execution::start_time.eq(now),
                step_execution::last_updated.eq(now),
            ))
            .execute(connection)?;
        self.take_partition_lease(connection, id, execution)?;
        step.version += 1;
        step.status = BatchStatus::Started;
        step.started = self.time(now);
        Ok(Some(ClaimedPartition {
            state: step_state_in(connection, id)?,
            row: step,
            lease: Lease {
                instance_id: JobInstanceId(instance),
                execution_id: JobExecutionId(execution),
                fence: job.fence,
                partition: Some(id),
            },
        }))
    }

    fn take_partition_lease(
        &self,
        connection: &mut Connection,
        id: StepExecutionId,
        execution: i64,
    ) -> QueryResult<()> {
        let holder = || {
            (
                partition_lease::owner.eq(self.owner.name()),
                partition_lease::expires_at.eq(self.expiry()),
            )
        };
        let again = diesel::update(partition_lease::table.find(id.0))
            .set((holder(), partition_lease::claims.eq(partition_lease::claims + 1)))
            .execute(connection)?;
        if again == 0 {
            diesel::insert_into(partition_lease::table)
                .values((
                    partition_lease::step_execution_id.eq(id.0),
                    partition_lease::job_execution_id.eq(execution),
                    partition_lease::claims.eq(1),
                    holder(),
                ))
                .execute(connection)?;
        }
        Ok(())
    }

    /// Implements `StepStore::reopen_partition`.
    pub(super) fn reopen_partition_in(
        &self,
        connection: &mut Connection,
        lease: &Lease,
        id: StepExecutionId,
        action: &'static str,
    ) -> Work<PartitionState> {
        self.ensure_held(connection, lease, action)?;
        self.end_sessions_of_dead_worker(connection, id)?;
        Db::share_execution(connection, lease.execution_id.0)?;
        Db::lock_step(connection, id.0)?;
        self.ensure_held(connection, lease, action)?;
        let Some(step) = step_in(connection, id)? else {
            return Ok(PartitionState::Settled);
        };
        let worker = partition_lease(connection, id)?;
        let (owner, expires_at, claims) = match worker {
            _ if step.status.is_final() => return Ok(PartitionState::Settled),
            Some(worker) => worker,
            None if step.status == BatchStatus::Starting => {
                return Ok(PartitionState::Reopened {
                    claims: 0,
                    died: None,
                });
            }
            None => return Ok(PartitionState::Settled),
        };
        let key = LeaseKey::Partition(id);
        if self.holder(connection, key, &owner, expires_at)? != HolderState::Dead {
            return Ok(PartitionState::Held);
        }
        // The steps of a flow have rows of their own, one for each name in a job execution: such a partition ends here, and a
        // restart of the job resumes it.
        let has_steps = self.close_steps_within(connection, &step, &owner)?;
        let now = self.now();
        let row = step_execution::table.find(id.0);
        if has_steps {
            self.close_step(connection, id.0, now, &Closing::crashed(&owner))?;
        } else {
            diesel::update(row)
                .set((
                    step_execution::version.eq(step.version + 1),
                    step_execution::status.eq(BatchStatus::Starting.as_str()),
                    step_execution::last_updated.eq(now),
                ))
                .execute(connection)?;
        }
        let nobody = (
            partition_lease::owner.eq(RELEASED),
            partition_lease::expires_at.eq(0),
        );
        diesel::update(partition_lease::table.find(id.0))
            .set(nobody)
            .execute(connection)?;
        Ok(match has_steps {
            true => PartitionState::Settled,
            false => PartitionState::Reopened {
                claims,
                died: (owner != RELEASED).then_some((owner, step.counters.commits)),
            },
        })
    }

    /// Called before rows of the partition are locked: a suspended worker may hold their locks.
    fn end_sessions_of_dead_worker(
        &self,
        connection: &mut Connection,
        id: StepExecutionId,
    ) -> QueryResult<()> {
        if let Some((owner, expires_at, _)) = partition_lease(connection, id)?
            && owner != RELEASED
            && self.holder(connection, LeaseKey::Partition(id), &owner, expires_at)? == HolderState::Dead
        {
            Db::end_sessions(connection, &owner)?;
        }
        Ok(())
    }

    /// Closes the open steps that a dead worker has started in a partition of a flow. Returns whether it has started any.
    fn close_steps_within(
        &self,
        connection: &mut Connection,
        partition: &StepExecution,
        owner: &str,
    ) -> QueryResult<bool> {
        let rows: Vec<(i64, String, Option<String>, DbTimestamp)> = step_execution::table
            .filter(step_execution::job_execution_id.eq(partition.job_execution_id.0))
            .select((
                step_execution::step_execution_id,
                step_execution::step_name,
                step_execution::status,
                step_execution::start_time,
            ))
            .load(connection)?;
        let prefix = format!("{}/", partition.step_name);
        let within: Vec<_> = rows
            .iter()
            .filter(|(_, name, ..)| name.starts_with(&prefix))
            .collect();
        let is_open = |status: &Option<String>| {
            let status = BatchStatus::from_repository(status.as_deref().unwrap_or_default());
            status.is_some_and(|status| !status.is_final())
        };
        for (id, _, _, started) in within.iter().filter(|(_, _, status, _)| is_open(status)) {
            self.close_step(connection, *id, *started, &Closing::crashed(owner))?;
        }
        Ok(!within.is_empty())
    }
}

/// Returns owner, expiry and number of claims of the lease of a partition.
fn partition_lease(
    connection: &mut Connection,
    id: StepExecutionId,
) -> QueryResult<Option<(String, i64, i64)>> {
    partition_lease::table
        .find(id.0)
        .select((
            partition_lease::owner,
            partition_lease::expires_at,
            partition_lease::claims,
        ))
        .first(connection)
        .optional()
}

pub(super) fn step_in(connection: &mut Connection, id: StepExecutionId) -> Work<Option<StepExecution>> {
    let row: Option<StepRow> = step_execution::table
        .find(id.0)
        .select(StepRow::as_select())
        .first(connection)
        .optional()?;
    let settings = connection.settings();
    row.map(|row| row.into_execution(settings))
        .transpose()
        .map_err(rejected)
}
