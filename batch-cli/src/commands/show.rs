//! `show`: an execution with its parameters and steps, printed or as a report.

use std::path::PathBuf;
use std::process::ExitCode;

use batch_runtime::execution::{JobExecution, OuterStep};
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{
    BatchStatus, JobExecutionId, JobInstanceId, JobOperator, JobOperatorError, JobParameters,
};
use clap::Args;
use serde_json::json as value;

use super::execution_id;
use crate::data::data_of;
use crate::error::CliError;
use crate::print::{out, outln, printable};
use crate::session::{Outcome, Session};
use crate::tables::{or_dash, print_message, print_steps, print_totals, state_of};
use crate::{json, report};

/// Shows an execution with its parameters and steps
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Id of the execution; with --last, id of a job
    #[arg(value_name = "EXECUTION", required_unless_present = "last")]
    what: Option<String>,
    /// Shows the latest execution, of a job or of all
    #[arg(long)]
    last: bool,
    /// Writes a report to a file, as .html with a timeline, or as .md
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    report: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        // Before the repository is opened.
        let id = match &self.what {
            Some(id) if !self.last => Some(execution_id(id).map_err(|problem| invalid(id, problem))?),
            _ => None,
        };
        let operator = session.open_to_read()?;
        let id = match id {
            Some(id) => id,
            None => latest(&operator, self.what)?,
        };
        if let Some(file) = self.report {
            report::write(&operator, id, &file)?;
            return Ok(ExitCode::SUCCESS);
        }
        let execution = operator
            .job_execution(id)?
            .ok_or(JobOperatorError::NoSuchJobExecution(id))?;
        if self.json {
            json::print(&to_json(&operator, &execution)?);
        } else {
            print_text(&operator, &execution)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn invalid(id: &str, problem: &str) -> CliError {
    CliError::Usage(format!(
        "invalid value '{id}' for '<EXECUTION>': {problem}\n\n  tip: `show --last {id}` shows the latest execution of a job"
    ))
}

/// Returns the latest execution of a job, or of all.
// Spec: CLI-06
fn latest(operator: &JobOperator, job: Option<String>) -> Result<JobExecutionId, CliError> {
    let found = operator.find_executions(&ExecutionFilter {
        job: job.clone(),
        limit: Some(1),
        ..ExecutionFilter::default()
    })?;
    match (found.first(), job) {
        (Some(latest), _) => Ok(latest.id),
        (None, Some(job)) => {
            // An unknown job is another mistake.
            operator.running_executions(&job)?;
            Err(CliError::NoExecution(format!("job `{job}` has no execution")))
        }
        (None, None) => Err(CliError::NoExecution("the repository has no execution".into())),
    }
}

/// Returns everything about an execution.
pub(crate) fn to_json(
    operator: &JobOperator,
    execution: &JobExecution,
) -> Result<serde_json::Value, JobOperatorError> {
    let mut shown = json::job_execution(execution, &state_of(operator, execution)?);
    let parameters = operator.parameters(execution.id)?;
    shown["parameters"] = parameters
        .iter()
        .map(|(name, _)| (name.to_owned(), value!(parameters.get(name))))
        .collect();
    let (data, unreadable) = data_of(operator, execution.id)?;
    if let Some(problem) = unreadable {
        shown["unreadable"] = value!([problem]);
    }
    shown["data"] = data
        .iter()
        .map(|(name, json)| {
            (
                name.to_owned(),
                serde_json::from_str::<serde_json::Value>(&json).unwrap_or_default(),
            )
        })
        .collect();
    shown["decisions"] = data
        .decisions()
        .map(|(decision, answer)| (decision.to_owned(), serde_json::Value::from(answer)))
        .collect();
    let steps = operator.step_executions(execution.id)?;
    shown["steps"] = value!(steps);
    let totals = operator.step_totals(execution.id)?;
    shown["totals"] = value!(totals);
    Ok(shown)
}

/// Returns the latest execution of the outermost job that runs a job with these parameters; `None` if that is not nested, or if its outer
/// job is complete.
fn outer_of(
    operator: &JobOperator,
    parameters: &JobParameters,
) -> Result<Option<JobExecution>, JobOperatorError> {
    let mut found: Vec<JobExecution> = Vec::new();
    let mut next = OuterStep::of(parameters);
    while let Some(OuterStep { instance, .. }) = next {
        // Parameters that were written by hand could name no instance, or a cycle.
        let is_new = found.iter().all(|one| one.instance_id != instance);
        let mut executions = match operator.job_instance(instance)?.filter(|_| is_new) {
            Some(_) => operator.job_executions(instance)?.into_iter(),
            None => break,
        };
        let Some(latest) = executions
            .next()
            .filter(|one| one.status != BatchStatus::Completed)
        else {
            break;
        };
        next = OuterStep::of(&operator.parameters(latest.id)?);
        found.push(latest);
    }
    Ok(found.pop())
}

/// Returns the id of an instance and, if it has several executions, the ids of the latest ones. `executions` begins with the latest.
fn with_executions(instance: JobInstanceId, executions: &[JobExecutionId]) -> String {
    const MAX_NAMED: usize = 10;
    let latest = executions.iter().take(MAX_NAMED).rev();
    let ids: Vec<String> = latest.map(ToString::to_string).collect();
    let ids = ids.join(", ");
    match executions.len() {
        0 | 1 => instance.to_string(),
        2..=MAX_NAMED => format!("{instance} (executions {ids})"),
        count => format!("{instance} ({count} executions, the latest: {ids})"),
    }
}

fn print_text(operator: &JobOperator, execution: &JobExecution) -> Result<(), JobOperatorError> {
    let (parameters, steps) = (
        operator.parameters(execution.id)?,
        operator.step_executions(execution.id)?,
    );
    let mut status = execution.status.to_string();
    let state = state_of(operator, execution)?;
    if state.is_dead(execution.status) {
        status += &match outer_of(operator, &parameters)? {
            Some(outer) => format!(
                ", but its process is dead: to resume it, launch its outer job `{}` again, or run `restart {}`",
                printable(&outer.job_name),
                outer.id
            ),
            None => ", but its process is dead: `launch` or `restart` resumes it".to_owned(),
        };
    }
    if let Some(before) = state.waits_for {
        status += &format!(", waits for execution {before}: one execution of the job runs at a time");
    }
    let definition = execution.configuration_location.as_deref();
    let instance = execution.instance_id;
    let executions = operator.job_executions(instance)?;
    let executions: Vec<JobExecutionId> = executions.iter().map(|one| one.id).collect();
    for (fact, value) in [
        ("job", execution.job_name.clone()),
        ("instance", with_executions(instance, &executions)),
        ("execution", execution.id.to_string()),
        ("status", status),
        ("exit status", execution.exit_status.escape_debug().to_string()),
        ("created", execution.created.to_string()),
        ("started", or_dash(execution.started)),
        ("ended", or_dash(execution.ended)),
        ("definition", definition.unwrap_or("-").to_owned()),
    ] {
        outln!("{fact:<11}  {value}");
    }
    for (name, parameter) in parameters.iter() {
        let parameter = parameter.to_text(name);
        outln!("parameter    {}", parameter.escape_debug());
    }
    let (data, unreadable) = data_of(operator, execution.id)?;
    if let Some(problem) = unreadable {
        outln!("not shown    {problem}");
    }
    for (decision, answer) in data.decisions() {
        outln!("decision     {}: {}", printable(decision), answer.escape_debug());
    }
    for (name, value) in data.iter() {
        outln!("data         {} = {}", printable(name), printable(&value));
    }
    print_message(&execution.exit_message);
    out("");
    print_steps(&steps, &execution.exit_message);
    print_totals(&operator.step_totals(execution.id)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_latest_executions() {
        let shown = |count: i64| {
            let executions: Vec<JobExecutionId> = (1..=count).rev().map(JobExecutionId).collect();
            with_executions(JobInstanceId(7), &executions)
        };
        assert_eq!(shown(1), "7");
        assert_eq!(shown(2), "7 (executions 1, 2)");
        assert_eq!(shown(10), "7 (executions 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)");
        assert_eq!(
            shown(12),
            "7 (12 executions, the latest: 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)"
        );
    }
}
