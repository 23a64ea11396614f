//! What the verbs print: tables for people, JSON for programs.

use serde_json::{Value, json};

use super::parameters::written;
use super::print::{err, out};

use crate::clock::Timestamp;
use crate::execution::{JobExecution, StepExecution};
use crate::ids::JobExecutionId;
use crate::operator::{JobOperator, JobOperatorError};
use crate::parameters::{JobParameter, ParameterValue};
use crate::repository::ExecutionFilter;
use crate::status::BatchStatus;

/// So many instances of a job are listed, the newest.
const LISTED: u32 = 100;

/// How the execution was begun, which says how it is continued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Began {
    /// `launch`: the same parameters find the instance again.
    ByParameters,
    /// `start`, `restart`: only its id does.
    Otherwise,
}

pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    /// `list JOB`: its executions, newest first.
    pub(super) fn executions(&self, operator: &JobOperator, job: &str) -> Result<(), JobOperatorError> {
        let mut executions = Vec::new();
        for instance in operator.job_instances(job, 0, LISTED)? {
            executions.extend(operator.job_executions(instance.id)?);
        }
        executions.sort_by_key(|execution| std::cmp::Reverse(execution.id));
        if executions.is_empty() && !self.json {
            out(format_args!("{job} has not been started"));
        }
        self.listed(operator, &executions, false)
    }

    /// `executions`
    pub(super) fn found(
        &self,
        operator: &JobOperator,
        filter: &ExecutionFilter,
    ) -> Result<(), JobOperatorError> {
        let executions = operator.find_executions(filter)?;
        if executions.is_empty() && !self.json {
            out("no such executions");
        }
        self.listed(operator, &executions, true)
    }

    fn listed(
        &self,
        operator: &JobOperator,
        executions: &[JobExecution],
        with_job: bool,
    ) -> Result<(), JobOperatorError> {
        if self.json {
            print_json(&executions.iter().map(execution_json).collect());
            return Ok(());
        }
        let mut head = vec![
            "EXECUTION",
            "INSTANCE",
            "STATUS",
            "EXIT STATUS",
            "CREATED",
            "ENDED",
        ];
        if with_job {
            head.insert(2, "JOB");
        }
        let mut table = Table::new(&head);
        for execution in executions {
            let dead = if is_dead(operator, execution)? {
                " (dead)"
            } else {
                ""
            };
            let mut row = vec![
                execution.id.to_string(),
                execution.instance_id.to_string(),
                format!("{}{dead}", execution.status),
                shortened(&execution.exit_status),
                execution.created.to_string(),
                or_dash(execution.ended),
            ];
            if with_job {
                row.insert(2, execution.job_name.clone());
            }
            table.row(row);
        }
        table.print();
        Ok(())
    }

    /// `list`
    pub(super) fn jobs(&self, operator: &JobOperator) -> Result<(), JobOperatorError> {
        let mut rows = Vec::new();
        for job in operator.job_names()? {
            let instances = operator.job_instance_count(&job)?;
            let last = match operator.job_instances(&job, 0, 1)?.first() {
                Some(instance) => operator.job_executions(instance.id)?.into_iter().next(),
                None => None,
            };
            rows.push((job, instances, last));
        }
        if self.json {
            let jobs: Vec<Value> = rows
                .iter()
                .map(|(job, instances, last)| {
                    json!({ "job": job, "instances": instances, "lastExecution": last.as_ref().map(execution_json) })
                })
                .collect();
            print_json(&Value::Array(jobs));
            return Ok(());
        }
        if rows.is_empty() {
            out(format_args!(
                "no jobs: the job path holds none, and the repository knows none"
            ));
        }
        let mut table = Table::new(&["JOB", "INSTANCES", "LAST EXECUTION", "STATUS", "CREATED"]);
        for (job, instances, last) in rows {
            let (id, status, created) = match last {
                Some(last) => {
                    let dead = if is_dead(operator, &last)? { " (dead)" } else { "" };
                    (
                        last.id.to_string(),
                        format!("{}{dead}", last.status),
                        last.created.to_string(),
                    )
                }
                None => ("-".into(), "-".into(), "-".into()),
            };
            table.row([job, instances.to_string(), id, status, created]);
        }
        table.print();
        Ok(())
    }

    /// `show`
    pub(super) fn execution(
        &self,
        operator: &JobOperator,
        id: JobExecutionId,
    ) -> Result<(), JobOperatorError> {
        let execution = operator
            .job_execution(id)?
            .ok_or(JobOperatorError::NoSuchJobExecution(id))?;
        let (parameters, steps) = (operator.parameters(id)?, operator.step_executions(id)?);
        if self.json {
            let mut value = execution_json(&execution);
            value["parameters"] = parameters
                .iter()
                .map(|(name, p)| (name.to_owned(), json!(p.value.to_text())))
                .collect();
            value["steps"] = steps.iter().map(step_json).collect();
            print_json(&value);
            return Ok(());
        }
        out(format_args!("job          {}", execution.job_name));
        out(format_args!("instance     {}", execution.instance_id));
        out(format_args!("execution    {}", execution.id));
        out(format_args!(
            "status       {}",
            live_status(operator, &execution)?
        ));
        out(format_args!(
            "exit status  {}",
            execution.exit_status.escape_debug()
        ));
        out(format_args!("created      {}", execution.created));
        out(format_args!("started      {}", or_dash(execution.started)));
        out(format_args!("ended        {}", or_dash(execution.ended)));
        out(format_args!(
            "definition   {}",
            execution.configuration_location.as_deref().unwrap_or("-")
        ));
        for (name, parameter) in parameters.iter() {
            // As it would be written.
            let written = written(name, parameter);
            out(format_args!("parameter    {}", written.escape_debug()));
        }
        print_message(&execution.exit_message);
        out("");
        print_steps(&steps, &execution.exit_message);
        Ok(())
    }

    /// `params`
    pub(super) fn parameters(
        &self,
        operator: &JobOperator,
        id: JobExecutionId,
    ) -> Result<(), JobOperatorError> {
        let parameters = operator.parameters(id)?;
        if self.json {
            print_json(&parameters.iter().map(parameter_json).collect());
            return Ok(());
        }
        for (name, parameter) in parameters.iter() {
            out(printable(&written(name, parameter)).replace('\n', "\\n"));
        }
        Ok(())
    }

    /// The end of `start`, `launch` and `restart`.
    pub(super) fn summary(
        &self,
        operator: &JobOperator,
        ended: &JobExecution,
        began: Began,
    ) -> Result<(), JobOperatorError> {
        let steps = operator.step_executions(ended.id)?;
        print_steps(&steps, &ended.exit_message);
        let duration = ended
            .ended
            .zip(ended.started)
            .map(|(end, start)| seconds(end.millis_since(start)));
        let exit = if ended.exit_status == ended.status.as_str() {
            String::new()
        } else {
            format!(", exit status {}", ended.exit_status.escape_debug())
        };
        let duration = duration
            .map(|seconds| format!(" in {seconds}"))
            .unwrap_or_default();
        out(format_args!("{} {}{exit}{duration}", ended.name(), ended.status));
        if ended.status == BatchStatus::Failed {
            err(format_args!("error: {}", printable(&ended.exit_message)));
        }
        let can_go_on = matches!(ended.status, BatchStatus::Failed | BatchStatus::Stopped)
            && operator.is_restartable(&ended.job_name);
        if can_go_on {
            let launch = match began {
                Began::ByParameters => "the same `launch` again, or ",
                Began::Otherwise => "",
            };
            err(format_args!(
                "to go on from the last checkpoint: {launch}`restart {}`",
                ended.id
            ));
        }
        Ok(())
    }
}

pub(super) fn print_json(value: &Value) {
    // A `Value` has string keys only, so this cannot fail.
    out(format_args!(
        "{}",
        serde_json::to_string_pretty(value).unwrap_or_default()
    ));
}

fn execution_json(execution: &JobExecution) -> Value {
    json!({
        "execution": execution.id.0,
        "instance": execution.instance_id.0,
        "job": execution.job_name,
        "name": execution.name(),
        "status": execution.status.as_str(),
        "exitStatus": execution.exit_status,
        "exitMessage": execution.exit_message,
        "created": execution.created.to_string(),
        "started": execution.started.map(|time| time.to_string()),
        "ended": execution.ended.map(|time| time.to_string()),
        "definition": execution.configuration_location,
    })
}

fn parameter_json((name, parameter): (&str, &JobParameter)) -> Value {
    let (kind, value) = match &parameter.value {
        ParameterValue::String(text) => ("string", json!(text)),
        ParameterValue::Long(number) => ("long", json!(number)),
        ParameterValue::Double(number) => ("double", json!(number)),
        ParameterValue::Date(time) => ("date", json!(time.to_string())),
        ParameterValue::Secret(reference) => ("secret", json!(reference.to_string())),
    };
    json!({ "name": name, "type": kind, "value": value, "identifying": parameter.identifying })
}

fn step_json(step: &StepExecution) -> Value {
    let counters = step.counters;
    json!({
        "step": step.step_name,
        "stepExecution": step.id.0,
        "status": step.status.as_str(),
        "exitStatus": step.exit_status,
        "exitMessage": step.exit_message,
        "started": step.started.to_string(),
        "ended": step.ended.map(|time| time.to_string()),
        "reads": counters.reads,
        "writes": counters.writes,
        "filters": counters.filters,
        "commits": counters.commits,
        "rollbacks": counters.rollbacks,
        "readSkips": counters.read_skips,
        "processSkips": counters.process_skips,
        "writeSkips": counters.write_skips,
    })
}

/// `told` is a message that the reader has seen already. What was skipped is shown where something was.
fn print_steps(steps: &[StepExecution], told: &str) {
    let skips = |step: &StepExecution| {
        let counters = step.counters;
        counters.read_skips + counters.process_skips + counters.write_skips
    };
    let skipped = steps.iter().any(|step| skips(step) > 0);
    let mut head = vec![
        "STEP",
        "STATUS",
        "EXIT STATUS",
        "READ",
        "FILTERED",
        "WRITTEN",
        "COMMITS",
        "ROLLBACKS",
        "TIME",
    ];
    if skipped {
        head.insert(6, "SKIPPED");
    }
    let mut table = Table::new(&head);
    for step in steps {
        let counters = step.counters;
        let time = step
            .ended
            .map_or_else(|| "-".into(), |end| seconds(end.millis_since(step.started)));
        let mut row = vec![
            step.step_name.clone(),
            step.status.to_string(),
            shortened(&step.exit_status),
            counters.reads.to_string(),
            counters.filters.to_string(),
            counters.writes.to_string(),
            counters.commits.to_string(),
            counters.rollbacks.to_string(),
            time,
        ];
        if skipped {
            row.insert(6, skips(step).to_string());
        }
        table.row(row);
    }
    table.print();
    for step in steps {
        let news = !step.exit_message.is_empty() && step.exit_message != told;
        let cut = shortened(&step.exit_status) != step.exit_status;
        if news || cut {
            out(format_args!("\nstep {}", step.step_name));
        }
        if cut {
            out(format_args!("exit status  {}", printable(&step.exit_status)));
        }
        if news {
            print_message(&step.exit_message);
        }
    }
}

/// The status, and whether it is one that nobody will change any more but the next launch or restart.
fn live_status(operator: &JobOperator, execution: &JobExecution) -> Result<String, JobOperatorError> {
    let note = match is_dead(operator, execution)? {
        true => ", but its process is dead: `launch` or `restart` continues it",
        false => "",
    };
    Ok(format!("{}{note}", execution.status))
}

/// Whether nobody runs an execution that has not ended.
fn is_dead(operator: &JobOperator, execution: &JobExecution) -> Result<bool, JobOperatorError> {
    Ok(!execution.status.is_final() && !operator.is_alive(execution.id)?)
}

fn print_message(message: &str) {
    if !message.is_empty() {
        out(format_args!(
            "message      {}",
            printable(message).replace('\n', "\n             ")
        ));
    }
}

/// User text without control characters, which a terminal would obey. Line breaks stay.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

fn shortened(exit_status: &str) -> String {
    const WIDTH: usize = 30;
    let text = printable(exit_status).replace('\n', " ");
    if text.chars().count() <= WIDTH {
        text
    } else {
        text.chars().take(WIDTH - 1).chain(['…']).collect()
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}

fn or_dash(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".into(), |time| time.to_string())
}

/// Columns as wide as their widest cell; those of numbers to the right.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(ToString::to_string).collect()],
        }
    }

    pub(super) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    pub(super) fn print(&self) {
        if self.rows.len() < 2 {
            return;
        }
        let mut widths = vec![0; self.rows[0].len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let is_number = |cell: &str| !cell.is_empty() && cell.chars().all(|c| c.is_ascii_digit());
        let of_numbers = |column: usize| {
            let mut cells = self.rows[1..].iter().map(|row| row[column].as_str());
            cells.clone().any(is_number) && cells.all(|cell| cell == "-" || is_number(cell))
        };
        let numbers: Vec<bool> = (0..widths.len()).map(of_numbers).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, width))| {
                    if numbers[column] && index > 0 {
                        format!("{cell:>width$}")
                    } else {
                        format!("{cell:<width$}")
                    }
                });
            out(format_args!(
                "{}",
                cells.collect::<Vec<_>>().join("  ").trim_end()
            ));
        }
    }
}
