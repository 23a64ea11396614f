//! The parameters of executions: with a column for each type in the layout of Spring Batch 4.3, as text with a class of Java in the layouts
//! of 5 and 6.

use std::collections::BTreeMap;
use std::mem;

use diesel::prelude::*;

use super::schema::{job_params, typed_params};
use super::{Connection, Work, corrupt};
use crate::parameters::{JobParameter, JobParameters, ParameterType, ParameterValue};
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::session::{RunQueryDsl, SessionSettings};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = job_params, treat_none_as_default_value = false)]
struct ParameterRow {
    job_execution_id: i64,
    type_cd: String,
    key_name: String,
    string_val: Option<String>,
    date_val: Option<DbTimestamp>,
    long_val: Option<i64>,
    double_val: Option<f64>,
    identifying: String,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = typed_params, treat_none_as_default_value = false)]
struct TypedRow {
    job_execution_id: i64,
    parameter_name: String,
    parameter_type: String,
    parameter_value: Option<String>,
    identifying: String,
}

/// The number of executions whose rows are read together.
pub(super) const PAGE: i64 = 500;

/// Inserts the parameters of an execution.
pub(super) fn insert_parameters(
    connection: &mut Connection,
    execution: i64,
    parameters: &JobParameters,
) -> QueryResult<()> {
    for (name, parameter) in parameters.iter() {
        if connection.layout().has_typed_parameters() {
            diesel::insert_into(typed_params::table)
                .values(TypedRow::new(execution, name, parameter))
                .execute(connection)?;
        } else {
            let row = ParameterRow::new(execution, name, parameter, connection.settings());
            diesel::insert_into(job_params::table)
                .values(row)
                .execute(connection)?;
        }
    }
    Ok(())
}

/// Returns the parameters of an execution.
pub(super) fn load_parameters(connection: &mut Connection, execution: i64) -> Work<JobParameters> {
    let mut all = parameters_of(connection, execution, execution)?;
    Ok(all.remove(&execution).unwrap_or_default())
}

/// Returns the parameters of the executions with ids from `first` to `last`; omits executions without parameters.
pub(super) fn parameters_of(
    connection: &mut Connection,
    first: i64,
    last: i64,
) -> Work<BTreeMap<i64, JobParameters>> {
    let mut all = BTreeMap::<i64, JobParameters>::new();
    if connection.layout().has_typed_parameters() {
        let rows: Vec<TypedRow> = typed_params::table
            .filter(typed_params::job_execution_id.between(first, last))
            .select(TypedRow::as_select())
            .load(connection)?;
        for row in rows {
            let of_execution = all.entry(row.job_execution_id).or_default();
            row.add_to(of_execution);
        }
        return Ok(all);
    }
    let rows: Vec<ParameterRow> = job_params::table
        .filter(job_params::job_execution_id.between(first, last))
        .select(ParameterRow::as_select())
        .load(connection)?;
    for row in rows {
        let of_execution = all.entry(row.job_execution_id).or_default();
        row.add_to(of_execution, connection.settings())?;
    }
    Ok(all)
}

fn yes_or_no(identifying: bool) -> String {
    if identifying { "Y" } else { "N" }.into()
}

fn is_yes(column: &str) -> bool {
    column.eq_ignore_ascii_case("y")
}

impl ParameterRow {
    /// The columns of other types get the fillers that Spring Batch writes.
    // Spec: REPO-28 to REPO-36
    fn new(execution: i64, name: &str, parameter: &JobParameter, settings: &SessionSettings) -> Self {
        let mut row = Self {
            job_execution_id: execution,
            type_cd: String::new(),
            key_name: name.into(),
            string_val: Some(String::new()),
            date_val: Some(DbTimestamp(0)),
            long_val: Some(0),
            double_val: Some(0.0),
            identifying: yes_or_no(parameter.identifying),
        };
        row.type_cd = match &parameter.value {
            ParameterValue::Long(value) => {
                row.long_val = Some(*value);
                "LONG"
            }
            ParameterValue::Double(value) => {
                row.double_val = Some(*value);
                "DOUBLE"
            }
            ParameterValue::Date(value) => {
                row.date_val = Some(settings.to_column(*value));
                "DATE"
            }
            ParameterValue::Null(ParameterType::String) => {
                row.string_val = None;
                "STRING"
            }
            ParameterValue::Null(ParameterType::Long) => {
                row.long_val = None;
                "LONG"
            }
            ParameterValue::Null(ParameterType::Double) => {
                row.double_val = None;
                "DOUBLE"
            }
            ParameterValue::Null(ParameterType::Date) => {
                row.date_val = None;
                "DATE"
            }
            // Values of Java were rejected earlier.
            ParameterValue::String(_) | ParameterValue::Secret(_) | ParameterValue::Java(_) => {
                row.string_val = parameter.value.typed_text();
                "STRING"
            }
        }
        .into();
        row
    }

    /// The fillers may be NULL, and so is a value that is null in Spring Batch.
    // Spec: REPO-38
    fn add_to(self, parameters: &mut JobParameters, settings: &SessionSettings) -> Work<()> {
        let (kind, value) = match self.type_cd.as_str() {
            "STRING" => (
                ParameterType::String,
                self.string_val.map(ParameterValue::of_stored),
            ),
            "LONG" => (ParameterType::Long, self.long_val.map(ParameterValue::Long)),
            "DOUBLE" => (ParameterType::Double, self.double_val.map(ParameterValue::Double)),
            "DATE" => {
                let time = self.date_val.map(|date| settings.to_time(date));
                (ParameterType::Date, time.map(ParameterValue::Date))
            }
            other => {
                return Err(corrupt(
                    format!(
                        "parameter `{}` of job execution {}",
                        self.key_name, self.job_execution_id
                    ),
                    format!("has TYPE_CD {other:?}, which is not a parameter type"),
                ));
            }
        };
        let value = value.unwrap_or(ParameterValue::Null(kind));
        let identifying = is_yes(&self.identifying);
        *parameters = mem::take(parameters).with_parameter(self.key_name, value, identifying);
        Ok(())
    }
}

impl TypedRow {
    // Spec: REPO-88
    fn new(execution: i64, name: &str, parameter: &JobParameter) -> Self {
        Self {
            job_execution_id: execution,
            parameter_name: name.into(),
            parameter_type: parameter.value.class().to_owned(),
            parameter_value: parameter.value.typed_text(),
            identifying: yes_or_no(parameter.identifying),
        }
    }

    fn add_to(self, parameters: &mut JobParameters) {
        let value = ParameterValue::of_typed(&self.parameter_type, self.parameter_value);
        let identifying = is_yes(&self.identifying);
        *parameters = mem::take(parameters).with_parameter(self.parameter_name, value, identifying);
    }
}
