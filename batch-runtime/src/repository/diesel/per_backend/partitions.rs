//! Partitions that worker processes claim: each has a lease, in addition to the lease of the job.

use std::collections::BTreeMap;

use diesel::prelude::*;

use super::contexts::step_state_in;
use super::lease::{RELEASED, is_released};
use super::rows::StepRow;
use super::schema::{instance_lease, job_execution, partition_lease, step_execution};
use super::step_bounds::{make_started, started_step};
use super::{Connection, Db, Repository, Work, fenced_if_none};
use crate::execution::StepExecution;
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::one_of::one_of_many;
use crate::repository::diesel::pool::{Tx, ensure_known};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::update::update;
use crate::repository::rules;
use crate::repository::{
    ClaimedPartition, HolderState, InnerSteps, Lease, LeaseKey, PartitionState, PartitionStore, Result,
    StepState,
};
use crate::status::BatchStatus;

/// The action of `reopen_partition`, for errors.
const REOPEN: &str = "reopen the partition";

impl PartitionStore for Repository {
    fn withhold_partition(&self, id: StepExecutionId) -> Result<bool> {
        self.run(
            Tx::write("claim the step execution").relaxed(),
            |connection, in_doubt| {
                // The row would not show whether the earlier attempt has claimed it, or another caller.
                ensure_known(in_doubt)?;
                let step = step_in(connection, id)?.filter(|step| step.status == BatchStatus::Starting);
                let Some(step) = step else {
                    return Ok(false);
                };
                let now = self.now().max(self.column(step.started));
                Ok(make_started(connection, &started_step(&step, now))? == 1)
            },
        )
    }

    fn claim_partition(
        &self,
        execution: JobExecutionId,
        id: StepExecutionId,
        is_first: bool,
    ) -> Result<Option<ClaimedPartition>> {
        self.run(Tx::write("claim the partition"), |connection, in_doubt| {
            ensure_known(in_doubt)?;
            self.claim_partition_in(connection, execution, id, is_first)
        })
    }

    fn reopen_partition(
        &self,
        lease: &Lease,
        id: StepExecutionId,
        inner: InnerSteps,
    ) -> Result<PartitionState> {
        self.run(Tx::write(REOPEN), |connection, _| {
            self.reopen_partition_in(connection, lease, id, inner)
        })
    }

    fn close_inner_steps(&self, lease: &Lease, partition: &StepExecution) -> Result<()> {
        const ACTION: &str = "end the steps of the partition";
        self.run(Tx::write(ACTION), |connection, _| {
            self.ensure_held(connection, lease, ACTION)?;
            Ok(self
                .close_steps_within(connection, partition, "unknown")
                .map(drop)?)
        })
    }

    fn hand_back_partition(&self, step: &mut StepExecution) -> Result<()> {
        const ACTION: &str = "hand the partition back";
        let (id, version) = (step.id, step.version);
        self.run(Tx::write(ACTION), |connection, in_doubt| {
            let row = step_execution::table.find(id.0);
            let changed = update(row.filter(step_execution::version.eq(version)))
                .set((
                    step_execution::version.eq(version + 1),
                    step_execution::status.eq(BatchStatus::Starting.as_str()),
                    step_execution::last_updated.eq(self.now()),
                ))
                .execute(connection)?;
            if changed == 0
                && in_doubt
                && step_in(connection, id)?.is_some_and(|row| row.version == version + 1)
            {
                return Ok(());
            }
            fenced_if_none(changed, ACTION)?;
            update(partition_lease::table.find(id.0))
                // The limit of claims is for a partition whose workers die, and this worker lives.
                .set(partition_lease::claims.eq(partition_lease::claims - 1))
                .execute(connection)?;
            Ok(())
        })?;
        step.version += 1;
        step.status = BatchStatus::Starting;
        Ok(())
    }

    fn stop_partitions(&self, partitions: &[StepExecutionId]) -> Result<()> {
        self.run(Tx::write("request the partitions to stop"), |connection, _| {
            for partition in partitions {
                let claimed = step_execution::table
                    .find(partition.0)
                    .filter(step_execution::status.eq(BatchStatus::Started.as_str()));
                // VERSION stays: the worker reads the status by `signals`, and its last commit must not be fenced.
                update(claimed)
                    .set(step_execution::status.eq(BatchStatus::Stopping.as_str()))
                    .execute(connection)?;
            }
            Ok(())
        })
    }

    fn partition_owners(&self, partitions: &[StepExecutionId]) -> Result<BTreeMap<StepExecutionId, String>> {
        let ids: Vec<i64> = partitions.iter().map(|partition| partition.0).collect();
        self.run(Tx::read("read the owners of partitions"), |connection, _| {
            let rows: Vec<(i64, String)> = partition_lease::table
                .filter(one_of_many(partition_lease::step_execution_id, &ids))
                .filter(partition_lease::owner.ne(""))
                .select((partition_lease::step_execution_id, partition_lease::owner))
                .load(connection)?;
            let owners = rows.into_iter().map(|(id, owner)| (StepExecutionId(id), owner));
            Ok(owners.collect())
        })
    }
}

impl Repository {
    /// Claims a partition. A claim of unknown outcome belongs to no worker: its lease expires.
    fn claim_partition_in(
        &self,
        connection: &mut Connection,
        execution: JobExecutionId,
        id: StepExecutionId,
        is_first: bool,
    ) -> Work<Option<ClaimedPartition>> {
        // Before anything is read: a process that closes the execution waits for this claim, or its closed rows
        // are seen here.
        Db::share_execution(connection, execution.0)?;
        let Some(mut step) = step_in(connection, id)? else {
            return Ok(None);
        };
        if step.status != BatchStatus::Starting || step.job_execution_id != execution {
            return Ok(None);
        }
        // A coordinator without the lease cannot receive the result: the next launch runs the partition.
        let Some(job) = lease_of_execution(connection, execution)? else {
            return Ok(None);
        };
        if is_stopping(connection, execution)? {
            return Ok(None);
        }
        let now = self.now().max(self.column(step.started));
        // The same ticket may be delivered twice: the other worker has changed VERSION since the row was read.
        if make_started(connection, &started_step(&step, now))? == 0 {
            return Ok(None);
        }
        self.take_partition_lease(connection, &step)?;
        // No state is stored.
        let is_new = is_first && step.version == 0;
        step.version += 1;
        step.status = BatchStatus::Started;
        step.started = self.time(now);
        Ok(Some(ClaimedPartition {
            state: match is_new {
                true => StepState::default(),
                false => step_state_in(connection, id)?,
            },
            row: step,
            lease: Lease {
                partition: Some(id),
                ..job
            },
        }))
    }

    fn take_partition_lease(&self, connection: &mut Connection, step: &StepExecution) -> QueryResult<()> {
        let (id, execution) = (step.id.0, step.job_execution_id.0);
        let holder = || {
            (
                partition_lease::owner.eq(self.owner.name()),
                partition_lease::expires_at.eq(self.expiry()),
            )
        };
        // A row that was never changed was never claimed.
        let again = match step.version {
            0 => 0,
            _ => update(partition_lease::table.find(id))
                .set((holder(), partition_lease::claims.eq(partition_lease::claims + 1)))
                .execute(connection)?,
        };
        if again == 0 {
            diesel::insert_into(partition_lease::table)
                .values((
                    partition_lease::step_execution_id.eq(id),
                    partition_lease::job_execution_id.eq(execution),
                    partition_lease::claims.eq(1),
                    holder(),
                ))
                .execute(connection)?;
        }
        Ok(())
    }

    /// Makes the partition of a dead worker STARTING, or closes it.
    fn reopen_partition_in(
        &self,
        connection: &mut Connection,
        lease: &Lease,
        id: StepExecutionId,
        inner: InnerSteps,
    ) -> Work<PartitionState> {
        // Before sessions are ended: a coordinator that was taken over must not end those of its successor's workers.
        self.ensure_held(connection, lease, REOPEN)?;
        self.end_sessions_of_dead_worker(connection, id)?;
        Db::share_execution(connection, lease.execution_id.0)?;
        Db::lock_step(connection, id.0)?;
        // Again, because a takeover may have come while this waited for the locks.
        self.ensure_held(connection, lease, REOPEN)?;
        let Some(step) = step_in(connection, id)? else {
            return Ok(PartitionState::Settled);
        };
        let worker = partition_lease(connection, id)?;
        let (owner, expires_at, claims) = match worker {
            _ if step.status.is_final() => return Ok(PartitionState::Settled),
            Some(worker) => worker,
            // No worker has claimed it: only its ticket is lost, with the worker that took it.
            None if step.status == BatchStatus::Starting => {
                return Ok(PartitionState::Reopened {
                    claims: 0,
                    died: None,
                });
            }
            None => return Ok(PartitionState::Settled),
        };
        let key = LeaseKey::Partition(id);
        // The worker may have renewed its lease since the coordinator found it silent.
        if self.holder(connection, key, &owner, expires_at)? != HolderState::Dead {
            return Ok(PartitionState::Held);
        }
        let mut committed = step.counters.commits;
        let ends = match inner {
            InnerSteps::None => false,
            InnerSteps::Reopen => {
                let within = inner_steps(connection, &step)?;
                for (inner, _) in within.open {
                    self.reopen_step(connection, inner)?;
                }
                committed += within.progress;
                false
            }
            InnerSteps::Close => self.close_steps_within(connection, &step, &owner)?,
        };
        match ends {
            true => self.close_step(connection, id.0, Some(self.now()), &rules::crashed(&owner))?,
            false => self.reopen_step(connection, id.0)?,
        };
        // Should the worker only be suspended, its next renewal fails, and it stops.
        update(partition_lease::table.find(id.0))
            .set(partition_lease::expires_at.eq(RELEASED))
            .execute(connection)?;
        Ok(match ends {
            true => PartitionState::Settled,
            false => PartitionState::Reopened {
                claims,
                died: (!is_released(&owner, expires_at)).then_some((owner, committed)),
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
            && !is_released(&owner, expires_at)
            && self.holder(connection, LeaseKey::Partition(id), &owner, expires_at)? == HolderState::Dead
        {
            Db::end_sessions(connection, &owner)?;
        }
        Ok(())
    }

    /// Makes a step execution STARTING again. VERSION grows: what the dead worker may still write is rejected.
    fn reopen_step(&self, connection: &mut Connection, id: i64) -> QueryResult<usize> {
        update(step_execution::table.find(id))
            .set((
                step_execution::version.eq(step_execution::version + 1),
                step_execution::status.eq(BatchStatus::Starting.as_str()),
                step_execution::last_updated.eq(self.now()),
            ))
            .execute(connection)
    }

    /// Closes the open steps that a dead worker has started in a partition of a flow. Returns whether it has started any.
    fn close_steps_within(
        &self,
        connection: &mut Connection,
        partition: &StepExecution,
        owner: &str,
    ) -> QueryResult<bool> {
        let within = inner_steps(connection, partition)?;
        for (id, started) in within.open {
            self.close_step(
                connection,
                id,
                Some(self.now()).max(started),
                &rules::crashed(owner),
            )?;
        }
        Ok(within.has_any)
    }
}

/// The id of a step execution, and when it started.
type OpenStep = (i64, Option<DbTimestamp>);

/// The state of the steps in a partition of a flow.
#[derive(Default)]
struct InnerStepSummary {
    has_any: bool,
    /// Those that have not ended.
    open: Vec<OpenStep>,
    /// A number that grows with each commit of a chunk and each completed step.
    progress: i64,
}

/// Returns the state of the steps that a partition of a flow has started.
fn inner_steps(connection: &mut Connection, partition: &StepExecution) -> QueryResult<InnerStepSummary> {
    type Row = (i64, String, Option<String>, Option<DbTimestamp>, Option<i64>);
    let rows: Vec<Row> = step_execution::table
        .filter(step_execution::job_execution_id.eq(partition.job_execution_id.0))
        .select((
            step_execution::step_execution_id,
            step_execution::step_name,
            step_execution::status,
            step_execution::start_time,
            step_execution::commit_count,
        ))
        .load(connection)?;
    let prefix = format!("{}/", partition.step_name);
    let mut within = InnerStepSummary::default();
    for (id, _, status, started, commits) in rows.into_iter().filter(|row| row.1.starts_with(&prefix)) {
        let status = BatchStatus::from_repository(status.as_deref().unwrap_or_default());
        within.has_any = true;
        within.progress += commits.unwrap_or(0) + i64::from(status == Some(BatchStatus::Completed));
        if status.is_some_and(|status| !status.is_final()) {
            within.open.push((id, started));
        }
    }
    Ok(within)
}

/// Returns the lease of an instance if it is held for this job execution.
fn lease_of_execution(connection: &mut Connection, execution: JobExecutionId) -> QueryResult<Option<Lease>> {
    let instance = job_execution::table
        .find(execution.0)
        .select(job_execution::job_instance_id);
    let held: Option<(i64, i64)> = instance_lease::table
        .filter(instance_lease::job_instance_id.eq_any(instance))
        .filter(instance_lease::job_execution_id.eq(execution.0))
        .filter(instance_lease::expires_at.ne(RELEASED))
        .select((instance_lease::job_instance_id, instance_lease::fence))
        .first(connection)
        .optional()?;
    Ok(held.map(|(instance, fence)| Lease {
        instance_id: JobInstanceId(instance),
        execution_id: execution,
        fence,
        partition: None,
    }))
}

/// Returns whether a job execution is requested to stop: its coordinator ends what no worker has claimed.
fn is_stopping(connection: &mut Connection, execution: JobExecutionId) -> QueryResult<bool> {
    let status: Option<String> = job_execution::table
        .find(execution.0)
        .select(job_execution::status)
        .first::<Option<String>>(connection)
        .optional()?
        .flatten();
    Ok(status.is_some_and(|status| status == BatchStatus::Stopping.as_str()))
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
    row.map(|row| row.into_execution(connection)).transpose()
}
