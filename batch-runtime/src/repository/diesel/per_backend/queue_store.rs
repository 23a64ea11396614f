//! The queue of partitions, the reports of workers, and the list of workers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::PoisonError;
use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use super::lease::RELEASED;
use super::schema::{
    instance_lease, job_execution, partition_lease, partition_report, partition_ticket, step_execution,
    worker,
};
use super::{Connection, Db, Repository};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::diesel::backend::{Backend, WantedTickets};
use crate::repository::diesel::one_of::one_of_many;
use crate::repository::diesel::pool::{Tx, ensure_known};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::diesel::update::update;
use crate::repository::{
    Channel, HolderState, LeaseKey, Listener, PartitionFinding, PartitionReport, PayloadKey, QueueStore,
    QueuedPartition, RepositoryError, Result, WorkerRow,
};
use crate::status::BatchStatus;

/// Databases limit the number of values in one statement.
const MAX_VALUES: usize = 1_000;

/// The status of a worker that takes partitions, and of one that takes no more.
const READY: &str = "READY";
const DRAINING: &str = "DRAINING";

impl QueueStore for Repository {
    fn submit_partitions(&self, queue: &str, partitions: &[QueuedPartition]) -> Result<()> {
        self.run(Tx::write("submit partitions"), |connection, _| {
            let alike = |a: &QueuedPartition, b: &QueuedPartition| {
                (a.attempt, &a.fingerprint) == (b.attempt, &b.fingerprint)
            };
            for partitions in partitions
                .chunk_by(alike)
                .flat_map(|alike| alike.chunks(MAX_VALUES))
            {
                put(connection, queue, partitions)?;
            }
            Db::notify(connection, Channel::Tickets, queue)?;
            Ok(())
        })
    }

    fn take_partitions(&self, queue: &str, count: u32, except: &[String]) -> Result<Vec<QueuedPartition>> {
        self.run(Tx::write("take partitions").once(), |connection, in_doubt| {
            // The earlier attempt may have deleted tickets that no worker got: their coordinator submits them again.
            ensure_known(in_doubt)?;
            let wanted = WantedTickets {
                queue,
                count: i64::from(count),
                except,
            };
            let rows = Db::lock_tickets(connection, &wanted)?;
            if rows.is_empty() {
                return Ok(Vec::new());
            }
            let ids: Vec<i64> = rows.iter().map(|(step, ..)| *step).collect();
            let taken =
                partition_ticket::table.filter(one_of_many(partition_ticket::step_execution_id, &ids));
            diesel::delete(taken).execute(connection)?;
            let partitions = rows
                .into_iter()
                .map(|(step, job, attempt, fingerprint)| QueuedPartition {
                    step_execution: StepExecutionId(step),
                    job_execution: JobExecutionId(job),
                    attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
                    fingerprint,
                });
            Ok(partitions.collect())
        })
    }

    fn defer_partition(&self, queue: &str, partition: &QueuedPartition, wait: Duration) -> Result<()> {
        self.run(Tx::write("put the partition back"), |connection, _| {
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let queued: i64 = partition_ticket::table
                .find(partition.step_execution.0)
                .count()
                .get_result(connection)?;
            if queued == 0 {
                let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                diesel::insert_into(partition_ticket::table)
                    .values((
                        partition_ticket::step_execution_id.eq(partition.step_execution.0),
                        partition_ticket::job_execution_id.eq(partition.job_execution.0),
                        partition_ticket::queue_name.eq(queue),
                        partition_ticket::attempt.eq(i64::from(partition.attempt)),
                        partition_ticket::fingerprint.eq(&partition.fingerprint),
                        partition_ticket::available_at.eq(now.saturating_add(wait)),
                    ))
                    .execute(connection)?;
            }
            Ok(())
        })
    }

    fn withdraw_partitions(&self, partitions: &[StepExecutionId]) -> Result<()> {
        if partitions.is_empty() {
            return Ok(());
        }
        self.run(Tx::write("withdraw partitions"), |connection, _| {
            for ids in chunks(partitions) {
                let queued =
                    partition_ticket::table.filter(one_of_many(partition_ticket::step_execution_id, ids));
                diesel::delete(queued).execute(connection)?;
            }
            Ok(())
        })
    }

    fn forget_partitions(&self, execution: JobExecutionId) -> Result<()> {
        self.run(Tx::write("remove the tickets of a job"), |connection, _| {
            let tickets = partition_ticket::table.filter(partition_ticket::job_execution_id.eq(execution.0));
            diesel::delete(tickets).execute(connection)?;
            let reports = partition_report::table.filter(partition_report::job_execution_id.eq(execution.0));
            diesel::delete(reports).execute(connection)?;
            Ok(())
        })
    }

    fn report_partition(&self, report: &PartitionReport, wakes: bool) -> Result<()> {
        self.run(Tx::write("report to the coordinator"), |connection, in_doubt| {
            let key = (
                report.step_execution.0,
                report.claim,
                i64::try_from(report.number).unwrap_or(i64::MAX),
            );
            let stored = partition_report::table.find(key);
            // Several workers may decline the same ticket.
            let may_exist = in_doubt || report.number == PartitionReport::DECLINED;
            if may_exist && stored.count().get_result::<i64>(connection)? > 0 {
                return Ok(());
            }
            // Nothing if the job has ended.
            job_execution::table
                .find(report.job_execution.0)
                .filter(job_execution::end_time.is_null())
                .select((
                    key.0.into_sql::<BigInt>(),
                    key.1.into_sql::<BigInt>(),
                    key.2.into_sql::<BigInt>(),
                    job_execution::job_execution_id,
                    report.report.as_str().into_sql::<Text>(),
                ))
                .insert_into(partition_report::table)
                .into_columns((
                    partition_report::step_execution_id,
                    partition_report::claim,
                    partition_report::report_number,
                    partition_report::job_execution_id,
                    partition_report::report,
                ))
                .execute(connection)?;
            if wakes {
                Db::notify(connection, Channel::Reports, &report.job_execution.to_string())?;
            }
            Ok(())
        })
    }

    fn take_reports(&self, partitions: &[StepExecutionId]) -> Result<Vec<PartitionReport>> {
        // Without the right to write, because most calls find nothing.
        let found = self.run(Tx::read("look for reports").once(), |connection, _| {
            let mut found = Vec::new();
            for ids in chunks(partitions) {
                found.extend(reports(connection, &ids, 0..=0)?);
            }
            Ok(found)
        })?;
        if found.is_empty() {
            return Ok(found);
        }
        self.run(Tx::write("take reports").once(), |connection, _| {
            // By their keys: others may have arrived meanwhile.
            for report in &found {
                let number = i64::try_from(report.number).unwrap_or(i64::MAX);
                let key = (report.step_execution.0, report.claim, number);
                diesel::delete(partition_report::table.find(key)).execute(connection)?;
            }
            Ok::<_, TransactionError<RepositoryError>>(())
        })?;
        Ok(found)
    }

    fn take_payloads(&self, after: &BTreeMap<StepExecutionId, PayloadKey>) -> Result<Vec<PartitionReport>> {
        self.new_payloads(after)
    }

    fn unattended_partitions(&self, partitions: &[StepExecutionId]) -> Result<Vec<PartitionFinding>> {
        self.run(Tx::read("look after partitions").once(), |connection, _| {
            let mut unattended_partitions = Vec::new();
            for ids in chunks(partitions) {
                let rows: Vec<(i64, Option<String>)> = step_execution::table
                    .filter(one_of_many(step_execution::step_execution_id, &ids))
                    .select((step_execution::step_execution_id, step_execution::status))
                    .load(connection)?;
                let leases: Vec<(i64, String, i64)> = partition_lease::table
                    .filter(one_of_many(partition_lease::step_execution_id, &ids))
                    .filter(partition_lease::expires_at.ne(RELEASED))
                    .select((
                        partition_lease::step_execution_id,
                        partition_lease::owner,
                        partition_lease::expires_at,
                    ))
                    .load(connection)?;
                for (id, status) in rows {
                    let status = status.as_deref().unwrap_or_default();
                    let lease = leases.iter().find(|(of, ..)| *of == id);
                    unattended_partitions.extend(self.sight(connection, id, status, lease)?);
                }
            }
            Ok(unattended_partitions)
        })
    }

    fn listen(&self, channel: Channel, about: &str) -> Result<Option<Box<dyn Listener>>> {
        self.pool.database().listen(channel, about)
    }

    fn clock_ahead(&self) -> Result<i64> {
        let there: i64 = self.run(Tx::read("read the time of the database"), |connection, _| {
            Ok(diesel::select(Db::now()).get_result(connection)?)
        })?;
        Ok(self.clock.now().0 - there)
    }

    fn is_on_server(&self) -> bool {
        Db::IS_REMOTE
    }

    fn register_worker(&self, row: &WorkerRow) -> Result<()> {
        self.run(Tx::write("register the worker").once(), |connection, _| {
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let lease = i64::try_from(self.lease_time.as_millis()).unwrap_or(i64::MAX);
            let values = (
                worker::queue_name.eq(&row.queue),
                worker::slots.eq(i64::from(row.slots)),
                worker::runtime_version.eq(&row.version),
                worker::status.eq(if row.is_draining { DRAINING } else { READY }),
                worker::expires_at.eq(now.saturating_add(lease)),
            );
            let name = self.owner.name();
            let renewed = update(worker::table.find(name)).set(values).execute(connection)?;
            // It is the first registration, or another worker has forgotten this one after its expiry.
            if renewed == 0 {
                diesel::insert_into(worker::table)
                    .values((worker::worker_name.eq(name), worker::started_at.eq(now), values))
                    .execute(connection)?;
            }
            // Of workers that have died long ago.
            let forgotten = worker::table.filter(worker::expires_at.lt(now.saturating_sub(FORGOTTEN_AFTER)));
            diesel::delete(forgotten).execute(connection)?;
            Ok(())
        })?;
        if let Err(error) = self.end_sessions_of_dead_workers() {
            tracing::debug!(%error, "cannot end the sessions of dead workers; the next renewal of the registration tries again");
        }
        Ok(())
    }

    fn deregister_worker(&self) -> Result<()> {
        self.run(Tx::write("deregister the worker"), |connection, _| {
            diesel::delete(worker::table.find(self.owner.name())).execute(connection)?;
            Ok(())
        })
    }

    fn owners(&self) -> Result<Vec<String>> {
        self.run(Tx::read("list the owners of executions"), |connection, _| {
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let held = instance_lease::table
                .filter(instance_lease::expires_at.ge(now))
                .select(instance_lease::owner);
            Ok(held.load(connection)?)
        })
    }

    fn workers(&self) -> Result<Vec<WorkerRow>> {
        self.run(Tx::read("list the workers"), |connection, _| {
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let rows: Vec<(String, String, i64, String, String, i64, i64)> =
                worker::table.order(worker::worker_name.asc()).load(connection)?;
            let held: Vec<(String, i64, i64)> = partition_lease::table
                .filter(partition_lease::expires_at.ne(RELEASED))
                .order(partition_lease::step_execution_id.asc())
                .select((
                    partition_lease::owner,
                    partition_lease::job_execution_id,
                    partition_lease::step_execution_id,
                ))
                .load(connection)?;
            let workers = rows
                .into_iter()
                .map(|(name, queue, slots, version, status, started, expires)| {
                    let held = held.iter().filter(|(owner, ..)| *owner == name);
                    let partitions =
                        held.map(|(_, job, step)| (JobExecutionId(*job), StepExecutionId(*step)));
                    WorkerRow {
                        partitions: partitions.collect(),
                        is_alive: expires >= now && !self.owner.has_ended(&name),
                        name,
                        queue,
                        slots: u32::try_from(slots).unwrap_or(0),
                        version,
                        is_draining: status == DRAINING,
                        started,
                        expires,
                    }
                });
            Ok(workers.collect())
        })
    }
}

/// How long an expired registration is kept, in milliseconds.
const FORGOTTEN_AFTER: i64 = 24 * 60 * 60 * 1_000;

impl Repository {
    /// Ends the sessions of registered workers that have died. A worker that was suspended while it claimed a partition holds the lock of
    /// the row, and no lease shows yet who has claimed it: without this, all others would wait for it.
    fn end_sessions_of_dead_workers(&self) -> Result<()> {
        if !Db::IS_REMOTE {
            return Ok(());
        }
        self.run(
            Tx::read("end the sessions of dead workers").once(),
            |connection, _| {
                let now: i64 = diesel::select(Db::now()).get_result(connection)?;
                let silent: Vec<(String, i64)> = worker::table
                    .filter(worker::expires_at.le(now))
                    .select((worker::worker_name, worker::expires_at))
                    .load(connection)?;
                for (name, expires_at) in self.dead_workers(&silent, now)? {
                    tracing::debug!(worker = name, "ending the sessions of a dead worker");
                    Db::end_sessions(connection, &name)?;
                    let mut ended = self.ended_workers.lock().unwrap_or_else(PoisonError::into_inner);
                    ended.push((name, expires_at));
                }
                Ok(())
            },
        )
    }

    /// Returns the workers that are certainly dead, of the `silent` ones whose registration has lapsed, unless their sessions were ended.
    fn dead_workers(&self, silent: &[(String, i64)], now: i64) -> QueryResult<Vec<(String, i64)>> {
        let mut ended = self.ended_workers.lock().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|worker| {
            let is_known = silent.contains(worker);
            if !is_known {
                self.observations.forget(LeaseKey::Worker(worker.0.clone()));
            }
            is_known
        });
        let mut dead = Vec::new();
        for worker in silent.iter().filter(|worker| !ended.contains(worker)) {
            let key = LeaseKey::Worker(worker.0.clone());
            if self.holder_at(key, &worker.0, worker.1, || Ok(now))? == HolderState::Dead {
                dead.push(worker.clone());
            }
        }
        Ok(dead)
    }

    fn sight(
        &self,
        connection: &mut Connection,
        id: i64,
        status: &str,
        lease: Option<&(i64, String, i64)>,
    ) -> QueryResult<Option<PartitionFinding>> {
        let step = StepExecutionId(id);
        let is_final = BatchStatus::from_repository(status).is_some_and(BatchStatus::is_final);
        if is_final {
            return Ok(Some(PartitionFinding::Ended(step)));
        }
        let Some((_, owner, expires_at)) = lease else {
            let is_new = status == BatchStatus::Starting.as_str();
            // A worker that could not record the end has released its lease.
            return Ok(Some(match is_new {
                true => PartitionFinding::Unclaimed(step),
                false => PartitionFinding::LeaseLost(step),
            }));
        };
        // Only a dead holder is reported: a partition that is reopened under a living worker would be run twice.
        let holder = self.holder(connection, LeaseKey::Partition(step), owner, *expires_at)?;
        Ok((holder == HolderState::Dead).then_some(PartitionFinding::LeaseLost(step)))
    }
}

/// Queues partitions of the same attempt and fingerprint, or replaces their tickets.
fn put(connection: &mut Connection, queue: &str, partitions: &[QueuedPartition]) -> QueryResult<()> {
    let Some(first) = partitions.first() else {
        return Ok(());
    };
    let ids: Vec<i64> = partitions
        .iter()
        .map(|partition| partition.step_execution.0)
        .collect();
    let replaced = partition_ticket::table.filter(one_of_many(partition_ticket::step_execution_id, &ids));
    diesel::delete(replaced).execute(connection)?;
    step_execution::table
        .filter(one_of_many(step_execution::step_execution_id, &ids))
        .select((
            step_execution::step_execution_id,
            step_execution::job_execution_id,
            queue.into_sql::<Text>(),
            i64::from(first.attempt).into_sql::<BigInt>(),
            first.fingerprint.as_str().into_sql::<Text>(),
            0_i64.into_sql::<BigInt>(),
        ))
        .insert_into(partition_ticket::table)
        .into_columns((
            partition_ticket::step_execution_id,
            partition_ticket::job_execution_id,
            partition_ticket::queue_name,
            partition_ticket::attempt,
            partition_ticket::fingerprint,
            partition_ticket::available_at,
        ))
        .execute(connection)
        .map(drop)
}

/// Returns the reports of these claims, in the order of each partition.
pub(super) fn reports(
    connection: &mut Connection,
    ids: &[i64],
    claims: RangeInclusive<i64>,
) -> QueryResult<Vec<PartitionReport>> {
    let rows: Vec<(i64, i64, i64, i64, String)> = partition_report::table
        .filter(one_of_many(partition_report::step_execution_id, ids))
        .filter(partition_report::claim.between(*claims.start(), *claims.end()))
        .load(connection)?;
    let report = |(step, claim, number, job, report)| PartitionReport {
        step_execution: StepExecutionId(step),
        job_execution: JobExecutionId(job),
        claim,
        number: u64::try_from(number).unwrap_or(u64::MAX),
        report,
    };
    let mut reports: Vec<PartitionReport> = rows.into_iter().map(report).collect();
    reports.sort_by_key(|report| {
        let is_end = report.number == PartitionReport::END;
        (report.step_execution, is_end, report.claim, report.number)
    });
    Ok(reports)
}

/// Returns the ids in pieces of a size that every database accepts.
pub(super) fn chunks(partitions: &[StepExecutionId]) -> Vec<Vec<i64>> {
    let ids = |ids: &[StepExecutionId]| ids.iter().map(|id| id.0).collect();
    partitions.chunks(MAX_VALUES).map(ids).collect()
}
