//! Whole instances: their states, deletion, export and import.

use diesel::prelude::*;

use super::contexts::{insert_job_context, insert_step_context, job_context_in, step_context_in};
use super::executions::{execution_ids, execution_in, insert_instance, instance_in, instance_with};
use super::lease::lease_of;
use super::parameters::{insert_parameters, load_parameters};
use super::rows::{StepRow, load_steps};
use super::schema::{
    created_step, instance_lease, job_context, job_execution, job_instance, job_params, notification,
    partition_lease, partition_report, partition_ticket, step_context, step_execution, turn,
};
use super::step_bounds::counter_columns;
use super::{Connection, Db, Repository, Work};
use crate::execution::{JobInstance, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::diesel::backend::{Backend, Sequence};
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::pool::{Tx, ensure_known};
use crate::repository::diesel::sequences::Sequences as _;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::rules;
use crate::repository::{
    ArchiveStore, ArchivedExecution, ArchivedInstance, ArchivedStep, FORMAT, InstanceState, RepositoryError,
    Result,
};
use crate::status::BatchStatus;

impl ArchiveStore for Repository {
    fn instance_states(
        &self,
        job: Option<&str>,
        after: JobInstanceId,
        count: u32,
    ) -> Result<Vec<InstanceState>> {
        self.run(Tx::read("read the states of job instances"), |connection, _| {
            let mut query = job_instance::table
                .filter(job_instance::job_instance_id.gt(after.0))
                .order(job_instance::job_instance_id.asc())
                .limit(count.into())
                .select((
                    job_instance::job_instance_id,
                    job_instance::job_name,
                    job_instance::job_key,
                ))
                .into_boxed();
            if let Some(job) = job {
                query = query.filter(job_instance::job_name.eq(job));
            }
            let instances: Vec<(i64, String, String)> = query.load(connection)?;
            let ids: Vec<i64> = instances.iter().map(|(id, ..)| *id).collect();
            let executions = executions_of(connection, &ids)?;
            let state = |(id, job_name, job_key): (i64, String, String)| {
                let (status, ended, last) = last_of(&executions, id);
                InstanceState {
                    instance: JobInstance {
                        id: JobInstanceId(id),
                        job_name,
                        job_key,
                    },
                    status,
                    ended: ended.map(|time| self.time(time)),
                    last,
                }
            };
            Ok(instances.into_iter().map(state).collect())
        })
    }

    fn delete_instances(&self, seen: &[InstanceState]) -> Result<u64> {
        self.run(Tx::write("delete job instances"), |connection, in_doubt| {
            // What an earlier attempt has deleted cannot be counted again.
            ensure_known(in_doubt)?;
            let mut ids = Vec::new();
            for state in seen {
                let id = state.instance.id.0;
                // Before the state is compared: a launch that waits for this lock finds the instance deleted, and
                // starts over.
                Db::lock_instance(connection, id)?;
                Db::lock_executions(connection, id)?;
                let held = match lease_of(connection, id)? {
                    Some(row) => self.is_held(connection, id, &row)?,
                    None => false,
                };
                // The instance may have run again since it was read.
                let (status, _, last) = last_of(&executions_of(connection, &[id])?, id);
                if !held && (status, last) == (state.status, state.last) && status.is_some() {
                    ids.push(id);
                }
            }
            delete(connection, &ids)?;
            Ok(ids.len() as u64)
        })
    }

    fn export_instance(&self, instance: JobInstanceId) -> Result<Option<ArchivedInstance>> {
        self.run(Tx::read("read the job instance"), |connection, _| {
            archived_instance(connection, instance)
        })
    }

    fn import_instance(&self, archived: &ArchivedInstance) -> Result<Option<JobInstanceId>> {
        self.run(Tx::write("import the job instance"), |connection, in_doubt| {
            // An instance with this key may be the one that the earlier attempt has imported, or another one.
            ensure_known(in_doubt)?;
            if instance_with(connection, &archived.job, &archived.job_key)?.is_some() {
                return Ok(None);
            }
            let id = Db::next_id(&self.pool, connection, Sequence::Instance)?;
            insert_instance(connection, id, &archived.job, &archived.job_key)?;
            for execution in &archived.executions {
                self.import_execution(connection, id, execution)?;
            }
            Ok(Some(JobInstanceId(id)))
        })
    }
}

impl Repository {
    fn import_execution(
        &self,
        connection: &mut Connection,
        instance: i64,
        archived: &ArchivedExecution,
    ) -> Work<()> {
        let id = Db::next_id(&self.pool, connection, Sequence::Execution)?;
        diesel::insert_into(job_execution::table)
            .values((
                job_execution::job_execution_id.eq(id),
                job_execution::version.eq(archived.version),
                job_execution::job_instance_id.eq(instance),
                job_execution::create_time.eq(self.column(archived.created)),
                job_execution::start_time.eq(archived.started.map(|time| self.column(time))),
                job_execution::end_time.eq(archived.ended.map(|time| self.column(time))),
                job_execution::status.eq(archived.status.as_str()),
                job_execution::exit_code.eq(&archived.exit_status),
                job_execution::exit_message.eq(&archived.exit_message),
                job_execution::last_updated.eq(self.column(archived.last_updated)),
                job_execution::job_configuration_location.eq(&archived.definition),
            ))
            .execute(connection)?;
        insert_parameters(connection, id, &archived.job_parameters())?;
        if let Some(context) = &archived.context {
            insert_job_context(connection, id, context)?;
        }
        for step in &archived.steps {
            self.import_step(connection, id, step)?;
        }
        Ok(())
    }

    fn import_step(&self, connection: &mut Connection, execution: i64, archived: &ArchivedStep) -> Work<()> {
        let id = Db::next_id(&self.pool, connection, Sequence::Step)?;
        macro_rules! insert {
            ($table:ident $(, $creation:ident)?) => {
                diesel::insert_into($table::table)
                    .values((
                        $table::step_execution_id.eq(id),
                        $table::version.eq(archived.version),
                        $table::step_name.eq(&archived.step),
                        $table::job_execution_id.eq(execution),
                        $($table::$creation.eq(self.column(archived.started)),)?
                        $table::start_time.eq(self.column(archived.started)),
                        $table::end_time.eq(archived.ended.map(|time| self.column(time))),
                        $table::status.eq(archived.status.as_str()),
                        counter_columns!(archived.counters, $table),
                        $table::exit_code.eq(&archived.exit_status),
                        $table::exit_message.eq(&archived.exit_message),
                        $table::last_updated.eq(self.column(archived.last_updated)),
                    ))
                    .execute(connection)?
            };
        }
        match connection.layout().has_typed_parameters() {
            true => insert!(created_step, create_time),
            false => insert!(step_execution),
        };
        if let Some(context) = &archived.context {
            insert_step_context(connection, id, context)?;
        }
        Ok(())
    }
}

/// Instance, id, status and end of executions, oldest first.
type Executions = Vec<(i64, i64, Option<String>, Option<DbTimestamp>)>;

fn executions_of(connection: &mut Connection, instances: &[i64]) -> QueryResult<Executions> {
    job_execution::table
        .filter(job_execution::job_instance_id.eq_any(instances))
        .select((
            job_execution::job_instance_id,
            job_execution::job_execution_id,
            job_execution::status,
            job_execution::end_time,
        ))
        .order(job_execution::job_execution_id.asc())
        .load(connection)
}

/// Returns how the last execution of an instance ended.
fn last_of(
    executions: &Executions,
    instance: i64,
) -> (Option<BatchStatus>, Option<DbTimestamp>, JobExecutionId) {
    let of_instance = executions.iter().filter(|(of, ..)| *of == instance);
    rules::last_of(of_instance.map(|(_, id, status, ended)| {
        let status = BatchStatus::from_repository(status.as_deref().unwrap_or_default());
        (JobExecutionId(*id), status, *ended)
    }))
}

/// Deletes instances in the order of the foreign keys.
fn delete(connection: &mut Connection, instances: &[i64]) -> QueryResult<()> {
    let executions: Vec<i64> = job_execution::table
        .filter(job_execution::job_instance_id.eq_any(instances))
        .select(job_execution::job_execution_id)
        .load(connection)?;
    let mut steps: Vec<i64> = Vec::new();
    for executions in executions.chunks(MAX_VALUES) {
        let of_these = step_execution::table
            .filter(step_execution::job_execution_id.eq_any(executions))
            .select(step_execution::step_execution_id);
        steps.extend(of_these.load::<i64>(connection)?);
    }
    macro_rules! delete {
        ($($table:ident: $column:ident in $ids:expr;)*) => {$(
            for ids in $ids.chunks(MAX_VALUES) {
                diesel::delete($table::table.filter($table::$column.eq_any(ids))).execute(connection)?;
            }
        )*};
    }
    delete! {
        step_context: step_execution_id in steps;
        step_execution: step_execution_id in steps;
        job_context: job_execution_id in executions;
        job_params: job_execution_id in executions;
        job_execution: job_execution_id in executions;
        partition_lease: job_execution_id in executions;
        partition_ticket: job_execution_id in executions;
        partition_report: job_execution_id in executions;
        turn: job_execution_id in executions;
        notification: job_instance_id in instances;
        instance_lease: job_instance_id in instances;
        job_instance: job_instance_id in instances;
    }
    Ok(())
}

/// Databases limit the number of values in one statement.
const MAX_VALUES: usize = 1_000;

pub(super) fn archived_instance(
    connection: &mut Connection,
    instance: JobInstanceId,
) -> Work<Option<ArchivedInstance>> {
    let Some(found) = instance_in(connection, instance.0)? else {
        return Ok(None);
    };
    let mut executions = Vec::new();
    for id in execution_ids(connection, instance)? {
        executions.extend(archived_execution(connection, id.0)?);
    }
    Ok(Some(ArchivedInstance {
        format: FORMAT.to_owned(),
        instance: found.id.0,
        job: found.job_name,
        job_key: found.job_key,
        layout: connection.layout(),
        executions,
    }))
}

fn archived_execution(connection: &mut Connection, id: i64) -> Work<Option<ArchivedExecution>> {
    let Some(execution) = execution_in::<RepositoryError>(connection, id)? else {
        return Ok(None);
    };
    let parameters = load_parameters(connection, id)?;
    let context = job_context_in(connection, id)?;
    let of_execution = step_execution::table.filter(step_execution::job_execution_id.eq(id));
    let mut steps = Vec::new();
    for step in load_steps!(of_execution, connection)? {
        let context = step_context_in(connection, step.id.0)?;
        steps.push(ArchivedStep::of(step, context));
    }
    Ok(Some(ArchivedExecution::of(
        execution,
        &parameters,
        context,
        steps,
    )))
}
