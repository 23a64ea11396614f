//! Rows to plain data and back.

use diesel::prelude::*;

use super::schema::{
    batch_job_execution, batch_job_execution_params, batch_job_instance, batch_step_execution,
};
use super::{Backend, Connection, Moment, RunQueryDsl, TransactionError};
use crate::clock::Timestamp;
use crate::execution::{JobExecution, JobInstance, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::{JobParameters, ParameterValue};
use crate::repository::RepositoryError;
use crate::status::BatchStatus;

/// Width of EXIT_MESSAGE, in characters.
const MAX_MESSAGE: usize = 2_500;

/// A text as EXIT_MESSAGE holds it: cut at a character boundary, without the NUL that not every database stores.
///
/// Spec: REPO-76
pub(super) fn stored_message(text: &str) -> String {
    text.chars()
        .filter(|character| *character != '\0')
        .take(MAX_MESSAGE)
        .collect()
}

pub(super) fn status_of(
    text: Option<String>,
    row: impl FnOnce() -> String,
) -> Result<BatchStatus, RepositoryError> {
    let text = text.unwrap_or_default();
    BatchStatus::from_repository(&text).ok_or_else(|| RepositoryError::Corrupt {
        row: row(),
        problem: format!("has STATUS {text:?}, which is no batch status"),
    })
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = batch_job_instance, check_for_backend(Backend))]
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
#[diesel(table_name = batch_job_execution, check_for_backend(Backend))]
pub(super) struct ExecutionRow {
    pub(super) job_execution_id: i64,
    version: Option<i64>,
    pub(super) job_instance_id: i64,
    create_time: Moment,
    start_time: Option<Moment>,
    end_time: Option<Moment>,
    status: Option<String>,
    exit_code: Option<String>,
    exit_message: Option<String>,
    last_updated: Option<Moment>,
    job_configuration_location: Option<String>,
}

impl ExecutionRow {
    pub(super) fn into_execution(self, job_name: String) -> Result<JobExecution, RepositoryError> {
        let id = self.job_execution_id;
        Ok(JobExecution {
            id: JobExecutionId(id),
            instance_id: JobInstanceId(self.job_instance_id),
            job_name,
            created: self.create_time.into(),
            started: self.start_time.map(Timestamp::from),
            ended: self.end_time.map(Timestamp::from),
            last_updated: self.last_updated.unwrap_or(self.create_time).into(),
            status: status_of(self.status, || format!("job execution {id}"))?,
            exit_status: self.exit_code.unwrap_or_default(),
            exit_message: self.exit_message.unwrap_or_default(),
            version: self.version.unwrap_or(0),
            configuration_location: self.job_configuration_location,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = batch_step_execution, check_for_backend(Backend))]
pub(super) struct StepRow {
    step_execution_id: i64,
    version: i64,
    step_name: String,
    job_execution_id: i64,
    start_time: Moment,
    end_time: Option<Moment>,
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
    last_updated: Option<Moment>,
}

impl TryFrom<StepRow> for StepExecution {
    type Error = RepositoryError;

    fn try_from(row: StepRow) -> Result<Self, RepositoryError> {
        let id = row.step_execution_id;
        Ok(Self {
            id: StepExecutionId(id),
            job_execution_id: JobExecutionId(row.job_execution_id),
            step_name: row.step_name,
            started: row.start_time.into(),
            ended: row.end_time.map(Timestamp::from),
            last_updated: row.last_updated.unwrap_or(row.start_time).into(),
            status: status_of(row.status, || format!("step execution {id}"))?,
            exit_status: row.exit_code.unwrap_or_default(),
            exit_message: row.exit_message.unwrap_or_default(),
            counters: StepCounters {
                reads: row.read_count.unwrap_or(0),
                writes: row.write_count.unwrap_or(0),
                filters: row.filter_count.unwrap_or(0),
                commits: row.commit_count.unwrap_or(0),
                rollbacks: row.rollback_count.unwrap_or(0),
                read_skips: row.read_skip_count.unwrap_or(0),
                process_skips: row.process_skip_count.unwrap_or(0),
                write_skips: row.write_skip_count.unwrap_or(0),
            },
            version: row.version,
        })
    }
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = batch_job_execution_params, check_for_backend(Backend), treat_none_as_default_value = false)]
pub(super) struct ParameterRow {
    job_execution_id: i64,
    type_cd: String,
    key_name: String,
    string_val: Option<String>,
    date_val: Option<Moment>,
    long_val: Option<i64>,
    double_val: Option<f64>,
    identifying: String,
}

/// The rows of an execution's parameters. The columns of other types get the fillers that Spring Batch writes.
///
/// Spec: REPO-28 to REPO-36
pub(super) fn parameter_rows(execution: i64, parameters: &JobParameters) -> Vec<ParameterRow> {
    let row = |(name, parameter): (&str, &crate::parameters::JobParameter)| {
        let (mut string, mut date, mut long, mut double) = (String::new(), 0, 0, 0.0);
        let type_cd = match &parameter.value {
            ParameterValue::Secret(reference) => {
                string = reference.to_stored();
                "STRING"
            }
            ParameterValue::String(value) => {
                string.clone_from(value);
                "STRING"
            }
            ParameterValue::Long(value) => {
                long = *value;
                "LONG"
            }
            ParameterValue::Double(value) => {
                double = *value;
                "DOUBLE"
            }
            ParameterValue::Date(value) => {
                date = value.0;
                "DATE"
            }
        };
        ParameterRow {
            job_execution_id: execution,
            type_cd: type_cd.into(),
            key_name: name.into(),
            string_val: Some(string),
            date_val: Some(Moment(date)),
            long_val: Some(long),
            double_val: Some(double),
            identifying: if parameter.identifying { "Y" } else { "N" }.into(),
        }
    };
    parameters.iter().map(row).collect()
}

/// The parameters of an execution, also as Spring Batch wrote them: fillers may be NULL, a value too.
///
/// Spec: REPO-38
pub(super) fn load_parameters(
    connection: &mut Connection,
    execution: i64,
) -> Result<JobParameters, TransactionError<RepositoryError>> {
    let rows: Vec<ParameterRow> = batch_job_execution_params::table
        .filter(batch_job_execution_params::job_execution_id.eq(execution))
        .select(ParameterRow::as_select())
        .load(connection)?;
    rows.into_iter()
        .try_fold(JobParameters::new(), |parameters, row| {
            let value = match row.type_cd.as_str() {
                "STRING" => ParameterValue::of_stored(row.string_val.unwrap_or_default()),
                "LONG" => ParameterValue::Long(row.long_val.unwrap_or(0)),
                "DOUBLE" => ParameterValue::Double(row.double_val.unwrap_or(0.0)),
                "DATE" => ParameterValue::Date(row.date_val.map_or(Timestamp(0), Timestamp::from)),
                other => {
                    return Err(TransactionError::Refused(RepositoryError::Corrupt {
                        row: format!("parameter `{}` of job execution {execution}", row.key_name),
                        problem: format!("has TYPE_CD {other:?}, which is no parameter type"),
                    }));
                }
            };
            Ok(parameters.with_parameter(row.key_name, value, row.identifying.eq_ignore_ascii_case("y")))
        })
}
