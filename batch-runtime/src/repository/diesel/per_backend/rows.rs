//! Rows, and their conversion to plain data.

use diesel::prelude::*;

use super::schema::{created_step, job_execution, job_instance, step_execution};
use super::{Connection, Work, corrupt, rejected};
use crate::execution::{JobExecution, JobInstance, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::session::{RunQueryDsl, SessionSettings};
use crate::repository::rules::{MAX_NUMBER, is_number};
use crate::repository::{RepositoryError, Result};
use crate::status::BatchStatus;

pub(super) fn status_of(text: Option<String>, row: impl FnOnce() -> String) -> Result<BatchStatus> {
    let text = text.unwrap_or_default();
    BatchStatus::from_repository(&text).ok_or_else(|| RepositoryError::Corrupt {
        row: row(),
        problem: format!("has STATUS {text:?}, which is not a batch status").into(),
    })
}

/// Returns the status and the message of a row for a list.
fn listed_status(status: Option<String>, message: Option<String>) -> (Option<String>, Option<String>) {
    let text = status.unwrap_or_default();
    if BatchStatus::from_repository(&text).is_some() {
        return (Some(text), message);
    }
    let damage = format!(
        "STATUS {text:?} is not a batch status. {}",
        message.unwrap_or_default()
    );
    (
        Some(BatchStatus::Unknown.as_str().into()),
        Some(damage.trim_end().into()),
    )
}

/// Returns the value of a column that every version of this runtime and of Spring Batch writes.
fn column(value: Option<i64>, name: &str, row: impl FnOnce() -> String) -> Result<i64> {
    match value {
        Some(value) => number(value, name, row),
        None => Err(RepositoryError::Corrupt {
            row: row(),
            problem: format!("has no {name}").into(),
        }),
    }
}

/// Returns the value of a column that counts something.
// Spec: LOSS-02
pub(super) fn number(value: i64, name: &str, row: impl FnOnce() -> String) -> Result<i64> {
    match is_number(value) {
        true => Ok(value),
        false => Err(RepositoryError::Corrupt {
            row: row(),
            problem: format!("has {name} {value}, which no program has counted").into(),
        }),
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = job_instance)]
pub(super) struct InstanceRow {
    job_instance_id: i64,
    job_name: String,
    job_key: String,
}

impl From<InstanceRow> for JobInstance {
    fn from(row: InstanceRow) -> Self {
        Self {
            id: JobInstanceId(row.job_instance_id),
            job_name: row.job_name,
            job_key: row.job_key,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = job_execution)]
pub(super) struct ExecutionRow {
    pub(super) job_execution_id: i64,
    version: Option<i64>,
    pub(super) job_instance_id: i64,
    create_time: DbTimestamp,
    start_time: Option<DbTimestamp>,
    end_time: Option<DbTimestamp>,
    status: Option<String>,
    exit_code: Option<String>,
    exit_message: Option<String>,
    last_updated: Option<DbTimestamp>,
    job_configuration_location: Option<String>,
}

impl ExecutionRow {
    /// Returns the row for a list: a status that cannot be read becomes UNKNOWN, and the message reports it. One damaged row must not hide
    /// all others.
    pub(super) fn for_list(mut self) -> Self {
        let message = self.exit_message.take();
        (self.status, self.exit_message) = listed_status(self.status, message);
        self.version = Some(self.version.unwrap_or(0).clamp(0, MAX_NUMBER));
        self
    }

    pub(super) fn into_execution(self, job_name: String, settings: &SessionSettings) -> Result<JobExecution> {
        let id = self.job_execution_id;
        let time = |column| settings.to_time(column);
        Ok(JobExecution {
            id: JobExecutionId(id),
            instance_id: JobInstanceId(self.job_instance_id),
            job_name,
            created: time(self.create_time),
            started: self.start_time.map(time),
            ended: self.end_time.map(time),
            last_updated: time(self.last_updated.unwrap_or(self.create_time)),
            status: status_of(self.status, || format!("job execution {id}"))?,
            exit_status: self.exit_code.unwrap_or_default(),
            exit_message: self.exit_message.unwrap_or_default(),
            version: column(self.version, "VERSION", || format!("job execution {id}"))?,
            configuration_location: self.job_configuration_location,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = step_execution)]
pub(super) struct CounterColumns {
    commit_count: Option<i64>,
    read_count: Option<i64>,
    filter_count: Option<i64>,
    write_count: Option<i64>,
    read_skip_count: Option<i64>,
    write_skip_count: Option<i64>,
    process_skip_count: Option<i64>,
    rollback_count: Option<i64>,
}

impl CounterColumns {
    /// Returns the columns for a list, with the nearest possible numbers: those without a value count nothing.
    pub(super) fn for_list(self) -> Self {
        let listed = |value: Option<i64>| Some(value.unwrap_or(0).clamp(0, MAX_NUMBER));
        Self {
            commit_count: listed(self.commit_count),
            read_count: listed(self.read_count),
            filter_count: listed(self.filter_count),
            write_count: listed(self.write_count),
            read_skip_count: listed(self.read_skip_count),
            write_skip_count: listed(self.write_skip_count),
            process_skip_count: listed(self.process_skip_count),
            rollback_count: listed(self.rollback_count),
        }
    }

    /// Returns the counters of a step in a history: a claim has rejected an instance whose counters are missing.
    pub(super) fn or_zero(&self) -> StepCounters {
        StepCounters {
            reads: self.read_count.unwrap_or(0),
            writes: self.write_count.unwrap_or(0),
            filters: self.filter_count.unwrap_or(0),
            commits: self.commit_count.unwrap_or(0),
            rollbacks: self.rollback_count.unwrap_or(0),
            read_skips: self.read_skip_count.unwrap_or(0),
            process_skips: self.process_skip_count.unwrap_or(0),
            write_skips: self.write_skip_count.unwrap_or(0),
        }
    }

    /// Returns the counters of a step execution.
    pub(super) fn into_counters(self, step: i64) -> Result<StepCounters> {
        let count = |value, name| column(value, name, || format!("step execution {step}"));
        Ok(StepCounters {
            reads: count(self.read_count, "READ_COUNT")?,
            writes: count(self.write_count, "WRITE_COUNT")?,
            filters: count(self.filter_count, "FILTER_COUNT")?,
            commits: count(self.commit_count, "COMMIT_COUNT")?,
            rollbacks: count(self.rollback_count, "ROLLBACK_COUNT")?,
            read_skips: count(self.read_skip_count, "READ_SKIP_COUNT")?,
            process_skips: count(self.process_skip_count, "PROCESS_SKIP_COUNT")?,
            write_skips: count(self.write_skip_count, "WRITE_SKIP_COUNT")?,
        })
    }
}

/// The counters of a step execution, without the texts of its row.
#[derive(Queryable, Selectable)]
#[diesel(table_name = step_execution)]
pub(super) struct CountersRow {
    pub(super) step_execution_id: i64,
    pub(super) job_execution_id: i64,
    pub(super) step_name: String,
    #[diesel(embed)]
    pub(super) counters: CounterColumns,
}

/// Loads the step executions that a query selects, in the order of their ids.
macro_rules! load_steps {
    ($query:expr, $connection:expr) => {{
        let query = $query.order(step_execution::step_execution_id.asc());
        let rows: Vec<StepRow> = query.select(StepRow::as_select()).load($connection)?;
        let steps = rows.into_iter().map(|row| row.into_execution($connection));
        steps.collect::<Work<Vec<StepExecution>>>()
    }};
}

pub(super) use load_steps;

#[derive(Queryable, Selectable)]
#[diesel(table_name = step_execution)]
pub(super) struct StepRow {
    step_execution_id: i64,
    version: i64,
    step_name: String,
    job_execution_id: i64,
    /// Since Spring Batch 5 it is NULL until the step starts.
    start_time: Option<DbTimestamp>,
    end_time: Option<DbTimestamp>,
    status: Option<String>,
    #[diesel(embed)]
    counters: CounterColumns,
    exit_code: Option<String>,
    exit_message: Option<String>,
    last_updated: Option<DbTimestamp>,
}

impl StepRow {
    /// Returns the row for a list, as [`ExecutionRow::for_list`] does.
    pub(super) fn for_list(mut self) -> Self {
        let message = self.exit_message.take();
        (self.status, self.exit_message) = listed_status(self.status, message);
        self.counters = self.counters.for_list();
        self.version = self.version.clamp(0, MAX_NUMBER);
        self
    }

    pub(super) fn into_execution(self, connection: &mut Connection) -> Work<StepExecution> {
        let started = match self.start_time.or(self.last_updated) {
            Some(started) => started,
            None => created(connection, self.step_execution_id)?,
        };
        self.started_at(started, connection.settings()).map_err(rejected)
    }

    fn started_at(self, started: DbTimestamp, settings: &SessionSettings) -> Result<StepExecution> {
        let row = self;
        let id = row.step_execution_id;
        let time = |column| settings.to_time(column);
        Ok(StepExecution {
            id: StepExecutionId(id),
            job_execution_id: JobExecutionId(row.job_execution_id),
            step_name: row.step_name,
            started: time(started),
            ended: row.end_time.map(time),
            last_updated: time(row.last_updated.unwrap_or(started)),
            status: status_of(row.status, || format!("step execution {id}"))?,
            exit_status: row.exit_code.unwrap_or_default(),
            exit_message: row.exit_message.unwrap_or_default(),
            counters: row.counters.into_counters(id)?,
            user_data: None,
            version: number(row.version, "VERSION", || format!("step execution {id}"))?,
        })
    }
}

/// Returns the creation of a step execution, which Spring Batch 6 inserts without any other time.
fn created(connection: &mut Connection, id: i64) -> Work<DbTimestamp> {
    if !connection.settings().format.layout.has_typed_parameters() {
        return Err(corrupt(
            format!("step execution {id}"),
            "has neither START_TIME nor LAST_UPDATED",
        ));
    }
    let created = created_step::table.find(id).select(created_step::create_time);
    Ok(created.first(connection)?)
}
