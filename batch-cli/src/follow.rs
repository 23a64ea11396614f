//! Runs a job to its end: starts it, shows its progress, prints how it ended and, if it can be resumed, how.

use std::process::ExitCode;

use batch_runtime::execution::JobExecution;
use batch_runtime::time::elapsed;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError};

use crate::commands::show;
use crate::json;
use crate::print::{errln, out, printable};
use crate::progress;
use crate::session::{Outcome, Session};
use crate::signals::Shutdown;
use crate::tables::{print_steps, print_totals};

/// The ways to resume an execution.
#[derive(Clone, Copy)]
pub(crate) enum Resume {
    /// By its id, or by the same `launch`, whose parameters identify the instance.
    ByLaunch,
    /// By its id only.
    ById,
    /// Not at all: the repository ends with this process.
    Never,
}

/// How the end of an execution is printed.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    resume: Resume,
    as_json: bool,
}

impl Ending {
    /// Tables, and a line.
    pub(crate) fn text(resume: Resume) -> Self {
        Self {
            resume,
            as_json: false,
        }
    }

    /// A line of JSON.
    pub(crate) fn json(resume: Resume) -> Self {
        Self {
            resume,
            as_json: true,
        }
    }
}

/// Follows an execution to its end. The job has run, so an error from here on is never reported as wrong usage.
pub(crate) fn follow(
    session: &Session,
    operator: &JobOperator,
    execution: JobExecutionId,
    mut ending: Ending,
    mut shutdown: Shutdown,
) -> Outcome {
    if session.is_in_memory() {
        ending.resume = Resume::Never;
    }
    let report = |error: JobOperatorError| errln!("error: {error}");
    let interval = session.settings.progress_interval;
    let code = match progress::watch(operator, execution, &[execution], interval, &mut shutdown) {
        Ok(Some(ended)) => {
            print_end(operator, &ended, ending).unwrap_or_else(report);
            operator.exit_code(&ended).unwrap_or_else(|error| {
                report(error);
                ended.status.exit_code()
            })
        }
        Ok(None) => BatchStatus::Failed.exit_code(),
        Err(error) => {
            report(error);
            BatchStatus::Failed.exit_code()
        }
    };
    Ok(ExitCode::from(code))
}

fn print_end(operator: &JobOperator, ended: &JobExecution, ending: Ending) -> Result<(), JobOperatorError> {
    match ending.as_json {
        true => json::print_line(&show::to_json(operator, ended)?),
        false => print_text(operator, ended)?,
    }
    if ended.status == BatchStatus::Failed {
        errln!("error: {}", printable(&ended.exit_message));
    }
    let can_resume = matches!(ended.status, BatchStatus::Failed | BatchStatus::Stopped)
        && operator.definitions().is_restartable(&ended.job_name);
    if can_resume {
        let how = match ending.resume {
            Resume::ByLaunch => "run the same `launch` again, or ",
            Resume::ById => "run ",
            Resume::Never => {
                errln!("it cannot be resumed, because the repository `memory:` ends with this process");
                return Ok(());
            }
        };
        let first = match ended.status {
            BatchStatus::Failed => "fix the cause and ",
            _ => "",
        };
        errln!(
            "to resume from the last checkpoint, {first}{how}`restart {}`",
            ended.id
        );
    }
    Ok(())
}

fn print_text(operator: &JobOperator, ended: &JobExecution) -> Result<(), JobOperatorError> {
    print_steps(&operator.step_executions(ended.id)?, &ended.exit_message);
    // A damaged row of an earlier execution must not hide how this one ended.
    match operator.step_totals(ended.id) {
        Ok(totals) => print_totals(&totals),
        Err(error) => errln!("warning: cannot read the totals: {error}"),
    }
    let mut line = format!("{} {}", ended.name(), ended.status);
    if ended.exit_status != ended.status.as_str() {
        line += &format!(", exit status {}", ended.exit_status.escape_debug());
    }
    if let (Some(end), Some(start)) = (ended.ended, ended.started) {
        line += &format!(" in {}", elapsed(end.millis_since(start)));
    }
    out(line);
    Ok(())
}
