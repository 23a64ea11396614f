//! Queries about many executions at once.

use std::collections::BTreeMap;

use diesel::dsl::{count_star, max};
use diesel::prelude::*;

use super::executions::{executions, load_executions};
use super::lease::LeaseRow;
use super::rows::{CountersRow, ExecutionRow, StepRow};
use super::schema::{instance_lease, job_execution, job_instance, step_execution};
use super::turns::waiting_in;
use super::{Db, Repository, rejected};
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::{ExecutionFilter, Holder, LeaseKey, OverviewStore, RepositorySize, Result};
use crate::status::BatchStatus;

/// Restricts a boxed query of executions to those that match a filter.
macro_rules! filtered {
    ($query:expr, $filter:expr, $repository:expr) => {{
        let (filter, mut query) = ($filter, $query);
        if let Some(job) = &filter.job {
            query = query.filter(job_instance::job_name.eq(job));
        }
        if !filter.statuses.is_empty() {
            let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
            query = query.filter(job_execution::status.eq_any(statuses));
        }
        if let Some(since) = filter.since {
            query = query.filter(job_execution::create_time.ge($repository.column(since)));
        }
        if let Some(until) = filter.until {
            query = query.filter(job_execution::create_time.lt($repository.column(until)));
        }
        if let Some(since) = filter.ended_since {
            query = query.filter(job_execution::end_time.ge($repository.column(since)));
        }
        if let Some(before) = filter.before {
            query = query.filter(job_execution::job_execution_id.lt(before.0));
        }
        if let Some(after) = filter.after {
            query = query.filter(job_execution::job_execution_id.gt(after.0));
        }
        query
    }};
}

pub(super) use filtered;

impl OverviewStore for Repository {
    fn latest_executions(&self) -> Result<Vec<JobExecution>> {
        self.run(Tx::read("list the latest job executions"), |connection, _| {
            let latest: Vec<(String, Option<i64>)> = job_execution::table
                .inner_join(job_instance::table)
                .group_by(job_instance::job_name)
                .select((job_instance::job_name, max(job_execution::job_execution_id)))
                .load(connection)?;
            let ids: Vec<i64> = latest.into_iter().filter_map(|(_, id)| id).collect();
            let query = executions!().filter(job_execution::job_execution_id.eq_any(ids));
            let mut found = load_executions!(query, connection, ExecutionRow::for_list)?;
            found.sort_unstable_by(|one, other| one.job_name.cmp(&other.job_name));
            Ok(found)
        })
    }

    fn latest_of_instances(
        &self,
        instances: &[JobInstanceId],
    ) -> Result<BTreeMap<JobInstanceId, JobExecutionId>> {
        let ids: Vec<i64> = instances.iter().map(|instance| instance.0).collect();
        self.run(Tx::read("read the latest job executions"), |connection, _| {
            let latest: Vec<(i64, Option<i64>)> = job_execution::table
                .filter(job_execution::job_instance_id.eq_any(&ids))
                .group_by(job_execution::job_instance_id)
                .select((
                    job_execution::job_instance_id,
                    max(job_execution::job_execution_id),
                ))
                .load(connection)?;
            let latest = latest
                .into_iter()
                .filter_map(|(instance, id)| Some((JobInstanceId(instance), JobExecutionId(id?))));
            Ok(latest.collect())
        })
    }

    fn holders(&self, instances: &[JobInstanceId]) -> Result<BTreeMap<JobInstanceId, Holder>> {
        let instances: Vec<i64> = instances.iter().map(|instance| instance.0).collect();
        self.run(Tx::read("read the lease holders"), |connection, _| {
            let rows: Vec<(i64, LeaseRow)> = instance_lease::table
                .filter(instance_lease::job_instance_id.eq_any(&instances))
                .select((instance_lease::job_instance_id, LeaseRow::as_select()))
                .load(connection)?;
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let holders = rows.into_iter().map(|(instance, row)| {
                let instance = JobInstanceId(instance);
                let key = LeaseKey::Instance(instance);
                let state = self.holder_at(key, &row.owner, row.expires_at, || Ok(now))?;
                let execution = JobExecutionId(row.job_execution_id);
                let owner = row.owner;
                Ok((
                    instance,
                    Holder {
                        execution,
                        owner,
                        state,
                    },
                ))
            });
            holders.collect()
        })
    }

    fn waiting(&self) -> Result<BTreeMap<JobExecutionId, JobExecutionId>> {
        self.run(Tx::read("read the turns of jobs"), |connection, _| {
            Ok(waiting_in(connection)?)
        })
    }

    fn steps_of(
        &self,
        executions: &[JobExecutionId],
    ) -> Result<BTreeMap<JobExecutionId, Vec<StepExecution>>> {
        let ids: Vec<i64> = executions.iter().map(|execution| execution.0).collect();
        self.run(Tx::read("list the step executions"), |connection, _| {
            let rows: Vec<StepRow> = step_execution::table
                .filter(step_execution::job_execution_id.eq_any(&ids))
                // No id of a step has a colon, and the names of partitions all do.
                .filter(step_execution::step_name.not_like("%:%"))
                .order(step_execution::step_execution_id.asc())
                .select(StepRow::as_select())
                .load(connection)?;
            let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for row in rows {
                let step = row.for_list().into_execution(connection)?;
                found.entry(step.job_execution_id).or_default().push(step);
            }
            Ok(found)
        })
    }

    fn counters_of(
        &self,
        executions: &[JobExecutionId],
    ) -> Result<BTreeMap<JobExecutionId, Vec<(String, StepCounters)>>> {
        let ids: Vec<i64> = executions.iter().map(|execution| execution.0).collect();
        self.run(
            Tx::read("read the counters of the step executions"),
            |connection, _| {
                let rows: Vec<CountersRow> = step_execution::table
                    .filter(step_execution::job_execution_id.eq_any(&ids))
                    .order(step_execution::step_execution_id.asc())
                    .select(CountersRow::as_select())
                    .load(connection)?;
                let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
                for row in rows {
                    let of_job = found.entry(JobExecutionId(row.job_execution_id)).or_default();
                    let counters = row.counters.for_list().into_counters(row.step_execution_id);
                    of_job.push((row.step_name, counters.map_err(rejected)?));
                }
                Ok(found)
            },
        )
    }

    fn count_executions(&self, filter: &ExecutionFilter) -> Result<Vec<(BatchStatus, u64)>> {
        self.run(Tx::read("count the job executions"), |connection, _| {
            let query = job_execution::table
                .inner_join(job_instance::table)
                .group_by(job_execution::status)
                .select((job_execution::status, count_star()))
                .into_boxed();
            let counts: Vec<(Option<String>, i64)> = filtered!(query, filter, self).load(connection)?;
            let mut found: Vec<(BatchStatus, u64)> = Vec::new();
            for (status, count) in counts {
                // As in the list of executions.
                let status = BatchStatus::from_repository(&status.unwrap_or_default());
                let (status, count) = (
                    status.unwrap_or(BatchStatus::Unknown),
                    u64::try_from(count).unwrap_or(0),
                );
                match found.iter_mut().find(|(known, _)| *known == status) {
                    Some((_, sum)) => *sum += count,
                    None => found.push((status, count)),
                }
            }
            Ok(found)
        })
    }

    fn size(&self) -> Result<RepositorySize> {
        self.run(Tx::read("count the rows"), |connection, _| {
            let instances: i64 = job_instance::table.count().get_result(connection)?;
            let executions: i64 = job_execution::table.count().get_result(connection)?;
            let steps: i64 = step_execution::table.count().get_result(connection)?;
            let [job_instances, job_executions, step_executions] =
                [instances, executions, steps].map(|count| u64::try_from(count).unwrap_or(0));
            Ok(RepositorySize {
                job_instances,
                job_executions,
                step_executions,
            })
        })
    }
}
