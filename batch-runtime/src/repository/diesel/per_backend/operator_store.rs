//! Requests to running executions, and queries.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;

use super::contexts::{job_state_if_any, step_state_of};
use super::executions::{
    execution_ids, execution_in, executions, instance_in, instance_with, last_execution, load_executions,
};
use super::lease::lease_of;
use super::overview_store::filtered;
use super::parameters::load_parameters;
use super::rows::{ExecutionRow, InstanceRow, StepRow, load_steps};
use super::schema::{job_context, job_execution, job_instance, step_context, step_execution};
use super::{Db, Repository, Work, rejected};
use crate::execution::{JobExecution, JobInstance, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::pool::{Tx, ensure_known};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::update::update;
use crate::repository::rules::{self, stored_message};
use crate::repository::{
    AbandonOutcome, AcceptOutcome, ClaimError, DeathOutcome, ExecutionFilter, HolderState, JobState,
    OperatorStore, RepositoryError, RepositoryLayout, Result, StopOutcome, StoredContext, is_of_java,
};
use crate::status::BatchStatus;

/// The number of executions whose contexts show how other programs write them.
const LATEST: i64 = 20;

/// The id of an execution or step execution that is UNKNOWN, its message, and its end.
type UnknownEnd = (i64, Option<String>, Option<DbTimestamp>);

impl OperatorStore for Repository {
    fn holder_state(&self, execution: JobExecutionId) -> Result<Option<HolderState>> {
        self.run(Tx::read("read the owner"), |connection, _| {
            let execution = execution_in(connection, execution.0)?;
            let Some(execution) = execution.filter(|execution| !execution.status.is_final()) else {
                return Ok(None);
            };
            let instance = execution.instance_id.0;
            Ok(Some(match lease_of(connection, instance)? {
                Some(row) if row.job_execution_id == execution.id.0 => {
                    self.holder_of(connection, instance, &row)?
                }
                // An execution of another program, which holds no lease.
                _ => HolderState::Alive,
            }))
        })
    }

    fn waits_for(&self, execution: JobExecutionId) -> Result<Option<JobExecutionId>> {
        self.turn_before(execution)
    }

    fn job_state(&self, id: JobExecutionId) -> Result<Option<JobState>> {
        self.run(Tx::read("read the state of the job"), |connection, _| {
            job_state_if_any(connection, id.0)
        })
    }

    fn request_stop(&self, id: JobExecutionId) -> Result<Option<StopOutcome>> {
        self.run(
            Tx::write("request the stop").once().with_priority(),
            |connection, in_doubt| {
                let Some(execution) = execution_in(connection, id.0)? else {
                    return Ok(None);
                };
                let instance = execution.instance_id.0;
                Db::lock_instance(connection, instance)?;
                Db::lock_executions(connection, instance)?;
                // Read again, under the locks.
                let Some(execution) = execution_in(connection, id.0)? else {
                    return Ok(None);
                };
                let Some(stopping) = execution.status.after_stop_request() else {
                    // An earlier attempt of this request may have closed it.
                    return Ok(Some(match in_doubt && execution.status == BatchStatus::Stopped {
                        true => StopOutcome::Closed,
                        false => StopOutcome::NotRunning,
                    }));
                };
                if execution.status != stopping {
                    let now = self.now();
                    update(job_execution::table.find(id.0))
                        .set((
                            // The runner finds another VERSION at its next write, reads the row and stops, if it
                            // still holds its lease.
                            job_execution::version.eq(execution.version + 1),
                            job_execution::status.eq(stopping.as_str()),
                            job_execution::last_updated.eq(now),
                        ))
                        .execute(connection)?;
                }
                let lease = lease_of(connection, instance)?;
                // Without a lease it is an execution of another program, which polls its row as this runtime does.
                let Some(row) = lease.as_ref().filter(|row| row.job_execution_id == id.0) else {
                    return Ok(Some(StopOutcome::Requested));
                };
                if self.is_held(connection, instance, row)? {
                    return Ok(Some(StopOutcome::Requested));
                }
                let closed = self.close_open_executions::<RepositoryError>(
                    connection,
                    instance,
                    lease.as_ref(),
                    None,
                )?;
                self.notify_of_closed::<RepositoryError>(connection, &closed)?;
                // The operator has ended the execution, so its end is not counted as a crash.
                Self::void_lease(connection, instance, row, None)?;
                Ok(Some(StopOutcome::Closed))
            },
        )
    }

    fn abandon(&self, id: JobExecutionId) -> Result<Option<AbandonOutcome>> {
        self.run(Tx::write("abandon the job execution"), |connection, in_doubt| {
            ensure_known(in_doubt)?;
            let Some(execution) = execution_in(connection, id.0)? else {
                return Ok(None);
            };
            let instance = execution.instance_id.0;
            Db::lock_instance(connection, instance)?;
            let lease = lease_of(connection, instance)?;
            let newest = last_execution(connection, instance)?;
            let running = self.running_execution(connection, instance, newest.as_ref(), lease.as_ref())?;
            if let Some(ClaimError::Running { owner, .. }) = running {
                return Ok(Some(AbandonOutcome::Running { owner }));
            }
            let mut closed =
                self.close_open_executions::<RepositoryError>(connection, instance, lease.as_ref(), None)?;
            // `id` is ended by the operator, not by the death of its owner.
            closed.retain(|closed| *closed != id);
            self.notify_of_closed::<RepositoryError>(connection, &closed)?;
            if let Some(row) = lease.as_ref().filter(|row| !row.is_free()) {
                Self::void_lease(connection, instance, row, None)?;
            }
            let complete: i64 = job_execution::table
                .filter(job_execution::job_instance_id.eq(instance))
                .filter(job_execution::status.eq(BatchStatus::Completed.as_str()))
                .count()
                .get_result(connection)?;
            if rules::abandoned(execution.status, complete > 0) == AbandonOutcome::Complete {
                return Ok(Some(AbandonOutcome::Complete));
            }
            // The rows are locked and have no runner, so VERSION need not be compared.
            update(job_execution::table.find(id.0))
                .set((
                    job_execution::version.eq(job_execution::version + 1),
                    job_execution::status.eq(BatchStatus::Abandoned.as_str()),
                    job_execution::last_updated.eq(self.now()),
                ))
                .execute(connection)?;
            Ok(Some(AbandonOutcome::Abandoned))
        })
    }

    fn declare_dead(&self, id: JobExecutionId) -> Result<Option<DeathOutcome>> {
        self.run(
            Tx::write("close the dead job execution"),
            |connection, in_doubt| {
                ensure_known(in_doubt)?;
                let Some(execution) = execution_in(connection, id.0)? else {
                    return Ok(None);
                };
                let instance = execution.instance_id.0;
                Db::lock_instance(connection, instance)?;
                let lease = lease_of(connection, instance)?;
                if let Some(row) = &lease
                    && self.is_held(connection, instance, row)?
                {
                    let owner = self.described_owner(connection, row)?;
                    return Ok(Some(DeathOutcome::Running { owner }));
                }
                Db::lock_executions(connection, instance)?;
                // Read again, under the locks. The caller has declared no other execution dead.
                let newest = last_execution(connection, instance)?;
                if newest.is_none_or(|newest| newest.id != id || newest.status.is_final()) {
                    return Ok(Some(DeathOutcome::Ended));
                }
                let closed = self.close_open_executions::<RepositoryError>(
                    connection,
                    instance,
                    lease.as_ref(),
                    None,
                )?;
                self.notify_of_closed::<RepositoryError>(connection, &closed)?;
                if let Some(row) = lease.as_ref().filter(|row| !row.is_free()) {
                    Self::void_lease(connection, instance, row, None)?;
                }
                Ok(Some(DeathOutcome::Closed))
            },
        )
    }

    fn accept_unknown(&self, id: JobExecutionId, reason: &str) -> Result<Option<AcceptOutcome>> {
        const UNKNOWN: &str = BatchStatus::Unknown.as_str();
        self.run(Tx::write("accept the job execution"), |connection, in_doubt| {
            let Some(execution) = execution_in(connection, id.0)? else {
                return Ok(None);
            };
            Db::lock_instance(connection, execution.instance_id.0)?;
            let of_job = job_execution::table
                .find(id.0)
                .filter(job_execution::status.eq(UNKNOWN))
                .select((
                    job_execution::job_execution_id,
                    job_execution::exit_message,
                    job_execution::end_time,
                ));
            let of_steps = step_execution::table
                .filter(step_execution::job_execution_id.eq(id.0))
                .filter(step_execution::status.eq(UNKNOWN))
                .select((
                    step_execution::step_execution_id,
                    step_execution::exit_message,
                    step_execution::end_time,
                ));
            let jobs: Vec<UnknownEnd> = of_job.load(connection)?;
            let steps: Vec<UnknownEnd> = of_steps.load(connection)?;
            if jobs.is_empty() && steps.is_empty() && !in_doubt {
                return Ok(Some(AcceptOutcome::Known));
            }
            let accepted = |message: Option<String>| {
                let message = rules::accepted_message(reason, &message.unwrap_or_default());
                stored_message(&message, self.settings.format.max_varchar)
            };
            // No instance with such an execution is claimed.
            for (id, message, ended) in jobs {
                update(job_execution::table.find(id))
                    .set((
                        job_execution::version.eq(job_execution::version + 1),
                        job_execution::status.eq(BatchStatus::Failed.as_str()),
                        job_execution::exit_message.eq(accepted(message)),
                        job_execution::end_time.eq(ended.unwrap_or_else(|| self.now())),
                        job_execution::last_updated.eq(self.now()),
                    ))
                    .execute(connection)?;
            }
            for (id, message, ended) in steps {
                update(step_execution::table.find(id))
                    .set((
                        step_execution::version.eq(step_execution::version + 1),
                        step_execution::status.eq(BatchStatus::Failed.as_str()),
                        step_execution::exit_message.eq(accepted(message)),
                        step_execution::end_time.eq(ended.unwrap_or_else(|| self.now())),
                        step_execution::last_updated.eq(self.now()),
                    ))
                    .execute(connection)?;
            }
            Ok(Some(AcceptOutcome::Accepted))
        })
    }

    fn has_java_contexts(&self) -> Result<bool> {
        // Spring Batch 4 writes JSON, unless it is configured otherwise.
        if self.settings.format.layout == RepositoryLayout::V4_3 {
            return Ok(false);
        }
        self.run(Tx::read("look at the latest contexts").once(), |connection, _| {
            let contexts: Vec<String> = job_context::table
                .order(job_context::job_execution_id.desc())
                .limit(LATEST)
                .select(job_context::short_context)
                .load(connection)?;
            Ok(contexts.iter().any(|context| is_of_java(context)))
        })
    }

    fn find_executions(&self, filter: &ExecutionFilter) -> Result<Vec<JobExecution>> {
        self.run(Tx::read("list job executions"), |connection, _| {
            let mut query = filtered!(executions!().into_boxed(), filter, self);
            if let Some(limit) = filter.limit {
                query = query.limit(limit.into());
            }
            if filter.after.is_none() {
                return load_executions!(query, connection, ExecutionRow::for_list);
            }
            let next = query.order(job_execution::job_execution_id.asc());
            let mut found = load_executions!(next, connection, ExecutionRow::for_list)?;
            found.reverse();
            Ok(found)
        })
    }

    fn find_instance(&self, job_name: &str, job_key: &str) -> Result<Option<JobInstance>> {
        self.run(Tx::read("find the job instance"), |connection, _| {
            Ok(instance_with(connection, job_name, job_key)?)
        })
    }

    fn instance(&self, id: JobInstanceId) -> Result<Option<JobInstance>> {
        self.run(Tx::read("read the job instance"), |connection, _| {
            Ok(instance_in(connection, id.0)?)
        })
    }

    fn instances(&self, job_name: &str, start: i64, count: i64) -> Result<Vec<JobInstance>> {
        self.run(Tx::read("list the job instances"), |connection, _| {
            let rows = job_instance::table
                .filter(job_instance::job_name.eq(job_name))
                .order(job_instance::job_instance_id.desc())
                .offset(start)
                .limit(count)
                .select(InstanceRow::as_select())
                .load(connection)?;
            Ok(rows.into_iter().map(JobInstance::from).collect())
        })
    }

    fn instance_count(&self, job_name: &str) -> Result<i64> {
        self.run(Tx::read("count the job instances"), |connection, _| {
            let of_job = job_instance::table.filter(job_instance::job_name.eq(job_name));
            Ok(of_job.count().get_result(connection)?)
        })
    }

    fn job_names(&self) -> Result<BTreeSet<String>> {
        self.run(Tx::read("list the job names"), |connection, _| {
            let names: Vec<String> = job_instance::table
                .select(job_instance::job_name)
                .distinct()
                .load(connection)?;
            Ok(names.into_iter().collect())
        })
    }

    fn job_execution(&self, id: JobExecutionId) -> Result<Option<JobExecution>> {
        self.run(Tx::read("read the job execution"), |connection, _| {
            execution_in(connection, id.0)
        })
    }

    fn job_executions(&self, instance: JobInstanceId) -> Result<Vec<JobExecution>> {
        self.run(Tx::read("list the job executions"), |connection, _| {
            let of_instance = executions!().filter(job_execution::job_instance_id.eq(instance.0));
            load_executions!(of_instance, connection)
        })
    }

    fn parameters(&self, id: JobExecutionId) -> Result<JobParameters> {
        self.run(Tx::read("read the job parameters"), |connection, _| {
            load_parameters(connection, id.0)
        })
    }

    fn original_parameters(&self, instance: JobInstanceId) -> Result<JobParameters> {
        self.run(
            Tx::read("read the job parameters"),
            |connection, _| match execution_ids(connection, instance)?.first() {
                Some(first) => load_parameters(connection, first.0),
                None => Ok(JobParameters::new()),
            },
        )
    }

    fn step_executions(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>> {
        self.run(Tx::read("list the step executions"), |connection, _| {
            let of_execution = step_execution::table.filter(step_execution::job_execution_id.eq(execution.0));
            load_steps!(of_execution, connection)
        })
    }

    fn user_data(&self, execution: JobExecutionId) -> Result<BTreeMap<StepExecutionId, String>> {
        self.run(Tx::read("read the user data of the steps"), |connection, _| {
            let of_execution = step_execution::table
                .filter(step_execution::job_execution_id.eq(execution.0))
                .select(step_execution::step_execution_id);
            let rows: Vec<(i64, String, Option<String>)> = step_context::table
                .filter(step_context::step_execution_id.eq_any(of_execution))
                .select((
                    step_context::step_execution_id,
                    step_context::short_context,
                    step_context::serialized_context,
                ))
                .load(connection)?;
            let data = rows.into_iter().filter_map(|(id, short, serialized)| {
                let context = StoredContext { short, serialized };
                // A context that cannot be read is reported when the step is resumed.
                let state = step_state_of(connection, StepExecutionId(id), &context).ok()?;
                Some((StepExecutionId(id), state.user_data?.as_json().to_owned()))
            });
            Ok(data.collect())
        })
    }
}
