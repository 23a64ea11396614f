//! Reading job instances and job executions within a transaction.

use diesel::prelude::*;

use super::rows::{ExecutionRow, InstanceRow};
use super::schema::{job_execution, job_instance};
use super::{Connection, Work, rejected};
use crate::execution::{JobExecution, JobInstance};
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::{TransactionError, on_unique_violation};
use crate::repository::{RepositoryError, Result};

/// Selects executions with the name of their job, newest first.
macro_rules! executions {
    () => {
        job_execution::table
            .inner_join(job_instance::table)
            .select((ExecutionRow::as_select(), job_instance::job_name))
            .order(job_execution::job_execution_id.desc())
    };
}

pub(super) use executions;

/// Loads the executions that a query selects, after a change of each row.
macro_rules! load_executions {
    ($query:expr, $connection:expr) => {
        load_executions!($query, $connection, std::convert::identity)
    };
    ($query:expr, $connection:expr, $change:expr) => {{
        let rows: Vec<(ExecutionRow, String)> = $query.load($connection)?;
        let settings = $connection.settings();
        let rows = rows
            .into_iter()
            .map(|(row, job_name)| $change(row).into_execution(job_name, settings));
        rows.collect::<Result<Vec<JobExecution>, _>>().map_err(rejected)
    }};
}

pub(super) use load_executions;

pub(super) fn execution_in<E: From<RepositoryError>>(
    connection: &mut Connection,
    id: i64,
) -> Work<Option<JobExecution>, E> {
    let query = executions!().filter(job_execution::job_execution_id.eq(id));
    Ok(load_executions!(query, connection)?.pop())
}

pub(super) fn instance_in(connection: &mut Connection, id: i64) -> QueryResult<Option<JobInstance>> {
    let row = job_instance::table
        .find(id)
        .select(InstanceRow::as_select())
        .first(connection)
        .optional()?;
    Ok(row.map(JobInstance::from))
}

/// Returns the instance of a job with this key.
pub(super) fn instance_with(
    connection: &mut Connection,
    job_name: &str,
    key: &str,
) -> QueryResult<Option<JobInstance>> {
    let row = job_instance::table
        .filter(job_instance::job_name.eq(job_name))
        .filter(job_instance::job_key.eq(key))
        .select(InstanceRow::as_select())
        .first(connection)
        .optional()?;
    Ok(row.map(JobInstance::from))
}

/// Inserts an instance. Conflicts if its job has one with the same key.
pub(super) fn insert_instance<E>(
    connection: &mut Connection,
    id: i64,
    job_name: &str,
    key: &str,
) -> Result<(), TransactionError<E>> {
    diesel::insert_into(job_instance::table)
        .values((
            job_instance::job_instance_id.eq(id),
            job_instance::version.eq(0),
            job_instance::job_name.eq(job_name),
            job_instance::job_key.eq(key),
        ))
        .execute(connection)
        // Another process may insert the same key at the same moment: the attempt after the conflict finds its
        // instance.
        .map_err(on_unique_violation)?;
    Ok(())
}

/// Returns the newest execution of an instance.
pub(super) fn last_execution<E: From<RepositoryError>>(
    connection: &mut Connection,
    instance: i64,
) -> Work<Option<JobExecution>, E> {
    let query = executions!().filter(job_execution::job_instance_id.eq(instance));
    Ok(load_executions!(query.limit(1), connection)?.pop())
}

/// Returns the ids of the executions of an instance, oldest first.
pub(super) fn execution_ids(
    connection: &mut Connection,
    instance: JobInstanceId,
) -> QueryResult<Vec<JobExecutionId>> {
    let ids: Vec<i64> = job_execution::table
        .filter(job_execution::job_instance_id.eq(instance.0))
        .select(job_execution::job_execution_id)
        .order(job_execution::job_execution_id.asc())
        .load(connection)?;
    Ok(ids.into_iter().map(JobExecutionId).collect())
}
