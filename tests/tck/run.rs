//! Executes a case with its own runtime.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::thread;
use std::time::Duration;

use batch_runtime::execution::{JobExecution, MetricName, StepExecution};
use batch_runtime::time::{Clock, SystemClock};
use batch_runtime::{
    BatchRuntime, BatchStatus, JobExecutionId, JobOperator, JobOperatorError, JobParameters, Timestamp,
};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use serde_json::Value;

use crate::case::{Action, Case};

/// The polling interval of a case that waits.
const POLL: Duration = Duration::from_millis(10);

/// Parameters by name.
pub(crate) type Parameters = BTreeMap<String, String>;

/// A case that is running.
pub(crate) struct Run {
    /// The operator of the case.
    pub(crate) operator: JobOperator,
    /// The name of the job's file.
    file: &'static str,
    /// The executions so far.
    pub(crate) executions: Vec<JobExecutionId>,
    /// The time before the first action.
    pub(crate) begin: Timestamp,
    /// The parameters of the last start or restart.
    parameters: Parameters,
}

/// Runs a case. The error is the action or assertion that failed.
pub(crate) fn run(case: &Case, jobs: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let database = folder.path().join("batch.db");
    let mut builder = BatchRuntime::builder()
        .repository(format!("sqlite://{}?synchronous=normal", database.display()))
        .job_path(jobs.display().to_string());
    for (name, value) in &case.system {
        builder = builder.system_property(*name, *value);
    }
    let mut run = Run {
        operator: builder.build().map_err(text)?.job_operator(),
        file: case.file,
        executions: Vec::new(),
        begin: SystemClock.now(),
        parameters: Parameters::new(),
    };
    let mut result = Ok(());
    for (index, action) in case.actions.iter().enumerate() {
        result = run
            .act(action)
            .map_err(|problem| format!("action {}, {action:?}: {problem}", index + 1));
        if result.is_err() {
            break;
        }
    }
    // The database must not go before the executions that were not waited for.
    for execution in &run.executions {
        if result.is_err() {
            let _ = run.operator.stop(*execution);
        }
        let _ = run.operator.wait(*execution);
    }
    result
}

/// Returns an error as text.
pub(crate) fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Compares what was found.
pub(crate) fn expect<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {found:?}, expected {expected:?}"))
}

/// Reads parameters in the form of the table.
pub(crate) fn parse(parameters: &str) -> Parameters {
    let pairs = parameters.split(", ").filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').expect("name=value");
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Returns the name of an error's variant.
fn name(error: &JobOperatorError) -> String {
    let text = format!("{error:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

impl Run {
    fn act(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Sql(statement) => {
                let mut connection = self.operator.connect().map_err(text)?;
                let sqlite = connection.sqlite().map_err(text)?;
                diesel::sql_query(*statement)
                    .execute(sqlite)
                    .map(drop)
                    .map_err(text)
            }
            Action::Start(parameters) => self.start(parse(parameters)).and_then(|()| self.wait()),
            Action::Begin(parameters) => self.start(parse(parameters)),
            Action::StartFails(code) => self.start_fails(code),
            Action::Restart(parameters) => self.restart(parse(parameters)).and_then(|()| self.wait()),
            Action::RestartWith(changes) => {
                let mut parameters = self.parameters.clone();
                parameters.extend(parse(changes));
                self.restart(parameters).and_then(|()| self.wait())
            }
            Action::BeginRestart(parameters) => self.restart(parse(parameters)),
            Action::RestartFails(execution, parameters, errors) => {
                let id = self.executions[execution - 1];
                rejected(
                    self.operator
                        .restart(id, parse(parameters).into_iter().collect::<JobParameters>()),
                    errors,
                )
            }
            Action::Abandon => self.operator.abandon(self.last()).map_err(text),
            Action::AbandonFails(error) => rejected(self.operator.abandon(self.last()), &[error]),
            Action::UntilRunning(count) => self.until_running(*count),
            Action::Stop => {
                self.operator.stop(self.last()).map_err(text)?;
                self.wait()
            }
            Action::Check(check) => (check.check)(self),
            assertion => self.assert(assertion),
        }
    }

    fn assert(&self, assertion: &Action) -> Result<(), String> {
        let execution = self.execution()?;
        match assertion {
            Action::Is(status) => {
                let found = format!("{} {}", execution.status, execution.exit_message);
                match execution.status == *status {
                    true => Ok(()),
                    false => Err(format!("{found}, expected {status}")),
                }
            }
            Action::ExitStatus(expected) if expected.contains(&execution.exit_status) => Ok(()),
            Action::ExitStatus(expected) => Err(format!(
                "exit status {:?}, expected {expected:?}; {}",
                execution.exit_status, execution.exit_message
            )),
            Action::SameInstance => {
                let first = self.operator.job_execution(self.executions[0]).map_err(text)?;
                let first = first.map(|first| first.instance_id);
                expect("instance", Some(execution.instance_id), first)
            }
            _ => self.assert_steps(assertion),
        }
    }

    fn assert_steps(&self, assertion: &Action) -> Result<(), String> {
        let steps = self.steps()?;
        let named: Vec<(&str, BatchStatus)> = steps
            .iter()
            .map(|step| (step.step_name.as_str(), step.status))
            .collect();
        let is_met = match assertion {
            Action::Steps(count) => steps.len() == *count,
            Action::EveryStep(status) => !steps.is_empty() && steps.iter().all(|step| step.status == *status),
            Action::EveryStepExit(exit) => {
                !steps.is_empty() && steps.iter().all(|step| step.exit_status == *exit)
            }
            Action::Step(name, status) => {
                let mut found = steps.iter().filter(|step| step.step_name == *name);
                found.next().is_some_and(|step| step.status == *status) && found.next().is_none()
            }
            Action::UserData(step, field, value) => {
                let found = steps.iter().find(|found| found.step_name == *step);
                let data = found.map(StepExecution::persistent_user_data::<Value>);
                let data = data.transpose().map_err(text)?.flatten().unwrap_or_default();
                return expect("persistent user data", data[*field].as_i64(), Some(*value));
            }
            Action::Property(name, value) => {
                let listed = format!("{name}={value}");
                steps
                    .iter()
                    .any(|step| step.exit_status.split(';').any(|property| property == listed))
            }
            Action::Metric(name, value) => {
                !steps.is_empty() && steps.iter().all(|step| has(step, *name, *value))
            }
            Action::StepMetric(step, name, value) => {
                let mut found = steps.iter().filter(|found| found.step_name == *step);
                found.next().is_some_and(|step| has(step, *name, *value)) && found.next().is_none()
            }
            other => return Err(format!("unknown assertion {other:?}")),
        };
        match is_met {
            true => Ok(()),
            false => Err(format!("step executions {named:?}: {}", summaries(&steps))),
        }
    }

    fn start(&mut self, parameters: Parameters) -> Result<(), String> {
        let pairs: JobParameters = parameters.clone().into_iter().collect();
        let id = self.operator.start_xml(self.file, pairs).map_err(text)?;
        self.executions.push(id);
        self.parameters = parameters;
        Ok(())
    }

    fn start_fails(&mut self, code: &str) -> Result<(), String> {
        match self.operator.start_xml(self.file, ()) {
            Ok(id) => {
                self.executions.push(id);
                self.wait()?;
                self.assert(&Action::Is(BatchStatus::Failed))
            }
            Err(JobOperatorError::JobStart { cause, .. }) if text(&cause).contains(code) => Ok(()),
            Err(other) => Err(format!("{other}, expected {code}")),
        }
    }

    fn restart(&mut self, parameters: Parameters) -> Result<(), String> {
        let pairs: JobParameters = parameters.clone().into_iter().collect();
        let id = self.operator.restart(self.last(), pairs).map_err(text)?;
        self.executions.push(id);
        self.parameters = parameters;
        Ok(())
    }

    fn wait(&self) -> Result<(), String> {
        self.operator.wait(self.last()).map(drop).map_err(text)
    }

    /// Waits until `count` batchlets wait for a stop request.
    fn until_running(&self, count: i64) -> Result<(), String> {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            number: i64,
        }

        let mut connection = self.operator.connect().map_err(text)?;
        let sqlite = connection.sqlite().map_err(text)?;
        loop {
            let found: Count = diesel::sql_query("SELECT COUNT(*) AS number FROM RUNNING")
                .get_result(sqlite)
                .map_err(text)?;
            if found.number == count {
                return Ok(());
            }
            if self.execution()?.status.is_final() {
                return Err("the execution ended before".into());
            }
            thread::sleep(POLL);
        }
    }

    /// Returns the id of the last execution.
    pub(crate) fn last(&self) -> JobExecutionId {
        *self.executions.last().expect("an execution")
    }

    /// Returns the last execution.
    pub(crate) fn execution(&self) -> Result<JobExecution, String> {
        let found = self.operator.job_execution(self.last()).map_err(text)?;
        found.ok_or_else(|| "the execution is gone".into())
    }

    /// Returns the step executions of the last execution. Partitions have further ones here, which Java's operator does not return.
    pub(crate) fn steps(&self) -> Result<Vec<StepExecution>, String> {
        let mut steps = self.operator.step_executions(self.last()).map_err(text)?;
        steps.retain(|step| !step.is_of_partition());
        Ok(steps)
    }
}

/// Returns whether a step execution has this value of a metric.
fn has(step: &StepExecution, name: MetricName, value: i64) -> bool {
    let metrics = step.counters.metrics();
    metrics
        .iter()
        .any(|metric| metric.name == name && metric.value == value)
}

/// Returns one line for each step execution.
fn summaries(steps: &[StepExecution]) -> String {
    let lines: Vec<String> = steps.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// Checks that a request was rejected with one of these errors.
pub(crate) fn rejected<T>(result: Result<T, JobOperatorError>, expected: &[&str]) -> Result<(), String> {
    match result {
        Ok(_) => Err(format!("accepted, expected one of {expected:?}")),
        Err(error) if expected.contains(&name(&error).as_str()) => Ok(()),
        Err(error) => Err(format!("{}, expected one of {expected:?}: {error}", name(&error))),
    }
}
