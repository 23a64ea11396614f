//! Rows, and their conversion to plain data and back.

use diesel::prelude::*;

use super::schema::{job_execution, job_instance, job_params, step_execution};
use super::{Connection, Work, corrupt};
use crate::execution::{JobExecution, JobInstance, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::{JobParameters, ParameterType, ParameterValue};
use crate::repository::RepositoryError;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::session::{RunQueryDsl, SessionSettings};
use crate::status::BatchStatus;

pub(super) fn status_of(
    text: Option<String>,
    row: impl FnOnce() -> String,
) -> Result<BatchStatus, RepositoryError> {
    let text = text.unwrap_or_default();
    BatchStatus::from_repository(&text).ok_or_else(|| RepositoryError::Corrupt {
        row: row(),
        problem: format!("has STATUS {text:?}, which is not a batch status").into(),
    })
}

/// Returns the value of a column that every version of this runtime and of Spring Batch writes.
fn column(value: Option<i64>, name: &str, row: impl FnOnce() -> String) -> Result<i64, RepositoryError> {
    value.ok_or_else(|| RepositoryError::Corrupt {
        row: row(),
        problem: format!("has no {name}").into(),
    })
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
    pub(super) fn into_execution(
        self,
        job_name: String,
        settings: &SessionSettings,
    ) -> Result<JobExecution, RepositoryError> {
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
pub(super) struct StepRow {
    step_execution_id: i64,
    version: i64,
    step_name: String,
    job_execution_id: i64,
    start_time: DbTimestamp,
    end_time: Option<DbTimestamp>,
    status: Option<String>,
    commit_count: Option<i64>,
    read_count: Option<i64>,
    filter_count: Option<i64>,
    write_count: Option<i64>,
    read_skip_count: Option<i64>,
    write_skip_count: Option<i64>,
    process_skip_count: Option<i64>,
    rollback_count: Option<i64>,
    exit_code: Option<String>,
    exit_message: Option<String>,
    last_updated: Option<DbTimestamp>,
}

impl StepRow {
    pub(super) fn into_execution(self, settings: &SessionSettings) -> Result<StepExecution, RepositoryError> {
        let row = self;
        let id = row.step_execution_id;
        let count = |value, name| column(value, name, || format!("step execution {id}"));
        let time = |column| settings.to_time(column);
        Ok(StepExecution {
            id: StepExecutionId(id),
            job_execution_id: JobExecutionId(row.job_execution_id),
            step_name: row.step_name,
            started: time(row.start_time),
            ended: row.end_time.map(time),
            last_updated: time(row.last_updated.unwrap_or(row.start_time)),
            status: status_of(row.status, || format!("step execution {id}"))?,
            exit_status: row.exit_code.unwrap_or_default(),
            exit_message: row.exit_message.unwrap_or_default(),
            counters: StepCounters {
                reads: count(row.read_count, "READ_COUNT")?,
                writes: count(row.write_count, "WRITE_COUNT")?,
                filters: count(row.filter_count, "FILTER_COUNT")?,
                commits: count(row.commit_count, "COMMIT_COUNT")?,
                rollbacks: count(row.rollback_count, "ROLLBACK_COUNT")?,
                read_skips: count(row.read_skip_count, "READ_SKIP_COUNT")?,
                process_skips: count(row.process_skip_count, "PROCESS_SKIP_COUNT")?,
                write_skips: count(row.write_skip_count, "WRITE_SKIP_COUNT")?,
            },
            user_data: None,
            version: row.version,
        })
    }
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = job_params, treat_none_as_default_value = false)]
pub(super) struct ParameterRow {
    job_execution_id: i64,
    type_cd: String,
    key_name: String,
    string_val: Option<String>,
    date_val: Option<DbTimestamp>,
    long_val: Option<i64>,
    double_val: Option<f64>,
    identifying: String,
}

/// Returns the rows of the parameters of an execution. The columns of other types get the fillers that Spring Batch writes.
///
/// Spec: REPO-28 to REPO-36
pub(super) fn parameter_rows(
    execution: i64,
    parameters: &JobParameters,
    settings: &SessionSettings,
) -> Vec<ParameterRow> {
    let row = |(name, parameter): (&str, &crate::parameters::JobParameter)| {
        let (mut string, mut date, mut long, mut double) =
            (Some(String::new()), Some(DbTimestamp(0)), Some(0), Some(0.0));
        let type_cd = match &parameter.value {
            ParameterValue::Secret(reference) => {
                string = Some(reference.to_stored());
                "STRING"
            }
            ParameterValue::String(value) => {
                string = Some(value.clone());
                "STRING"
            }
            ParameterValue::Long(value) => {
                long = Some(*value);
                "LONG"
            }
            ParameterValue::Double(value) => {
                double = Some(*value);
                "DOUBLE"
            }
            ParameterValue::Date(value) => {
                date = Some(settings.to_column(*value));
                "DATE"
            }
            ParameterValue::Null(ParameterType::String) => {
                string = None;
                "STRING"
            }
            ParameterValue::Null(ParameterType::Long) => {
                long = None;
                "LONG"
            }
            ParameterValue::Null(ParameterType::Double) => {
                double = None;
                "DOUBLE"
            }
            ParameterValue::Null(ParameterType::Date) => {
                date = None;
                "DATE"
            }
        };
        ParameterRow {
            job_execution_id: execution,
            type_cd: type_cd.into(),
            key_name: name.into(),
            string_val: string,
            date_val: date,
            long_val: long,
            double_val: double,
            identifying: if parameter.identifying { "Y" } else { "N" }.into(),
        }
    };
    parameters.iter().map(row).collect()
}

/// Returns the parameters of an execution. The fillers may be NULL, and so is a value that is null in Spring Batch.
///
/// Spec: REPO-38
pub(super) fn load_parameters(connection: &mut Connection, execution: i64) -> Work<JobParameters> {
    let rows: Vec<ParameterRow> = job_params::table
        .filter(job_params::job_execution_id.eq(execution))
        .select(ParameterRow::as_select())
        .load(connection)?;
    let settings = connection.settings();
    rows.into_iter()
        .try_fold(JobParameters::new(), |parameters, row| {
            let (kind, value) = match row.type_cd.as_str() {
                "STRING" => (
                    ParameterType::String,
                    row.string_val.map(ParameterValue::of_stored),
                ),
                "LONG" => (ParameterType::Long, row.long_val.map(ParameterValue::Long)),
                "DOUBLE" => (ParameterType::Double, row.double_val.map(ParameterValue::Double)),
                "DATE" => {
                    let time = row.date_val.map(|date| settings.to_time(date));
                    (ParameterType::Date, time.map(ParameterValue::Date))
                }
                other => {
                    return Err(corrupt(
                        format!("parameter `{}` of job execution {execution}", row.key_name),
                        format!("has TYPE_CD {other:?}, which is not a parameter type"),
                    ));
                }
            };
            let value = value.unwrap_or(ParameterValue::Null(kind));
            Ok(parameters.with_parameter(row.key_name, value, row.identifying.eq_ignore_ascii_case("y")))
        })
}
