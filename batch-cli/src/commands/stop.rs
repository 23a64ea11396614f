//! `stop`: requests executions to stop.

use std::thread;

use batch_runtime::operator::LaunchStatus;
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, LaunchId};
use clap::Args;

use super::execution_id;
use crate::error::CliError;
use crate::print::{errln, out, outln};
use crate::session::{Outcome, Session, exit_code};

/// Requests a running execution, in any process, to stop after the current item, and waits up to 5 seconds
#[derive(Args, Debug)]
pub(crate) struct Stop {
    /// Id of the execution, or of a remote launch; or id of a job, to stop all that runs of it
    #[arg(value_name = "EXECUTION|JOB")]
    what: String,
}

impl Stop {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let operator = session.open()?;
        // The id of a job is a name of XML, which begins with no digit.
        let Ok(id) = execution_id(&self.what) else {
            return stop_job(&operator, &self.what);
        };
        let has_stopped = match operator.stop(id) {
            Err(JobOperatorError::NoSuchJobExecution(_)) => stop_launch(&operator, LaunchId(id.0))?,
            stopped => print_stopped(&operator, id, stopped?)?,
        };
        Ok(exit_code(has_stopped))
    }
}

fn print_stopped(operator: &JobOperator, id: JobExecutionId, has_stopped: bool) -> Result<bool, CliError> {
    if has_stopped {
        outln!("execution {id} has stopped");
    } else {
        outln!("requested execution {id} to stop; it is still running");
    }
    if let Some(execution) = operator.job_execution(id)?
        && !execution.exit_message.is_empty()
    {
        out(execution.exit_message);
    }
    Ok(has_stopped)
}

/// Stops all executions of a job, and the launches of it that are queued.
// Spec: CLI-06
fn stop_job(operator: &JobOperator, job: &str) -> Outcome {
    let mut running = operator.running_executions(job)?;
    running.reverse();
    let mut launches = operator.launches()?;
    launches.retain(|launch| launch.job == job && launch.status == LaunchStatus::Queued);
    if running.is_empty() && launches.is_empty() {
        return Err(CliError::NothingRuns(job.to_owned()));
    }
    // First, so that no worker begins to run one.
    let mut have_stopped = true;
    for launch in launches {
        have_stopped &= report(stop_launch(operator, launch.id));
    }
    // A stop waits for a while, so all are requested at once.
    let stopped: Vec<_> = thread::scope(|scope| {
        let stop = |id: JobExecutionId| (id, scope.spawn(move || operator.stop(id)));
        let requested: Vec<_> = running.into_iter().map(stop).collect();
        let joined = requested.into_iter();
        joined
            .map(|(id, stopping)| (id, stopping.join().unwrap_or(Ok(false))))
            .collect()
    });
    for (id, stopped) in stopped {
        have_stopped &= match stopped {
            Err(JobOperatorError::JobExecutionNotRunning(_)) => {
                outln!("execution {id} has ended");
                true
            }
            Err(error) => report(Err(error.into())),
            Ok(has_stopped) => report(print_stopped(operator, id, has_stopped)),
        }
    }
    Ok(exit_code(have_stopped))
}

/// Prints an error, which must not keep the others from being stopped.
fn report(stopped: Result<bool, CliError>) -> bool {
    stopped.unwrap_or_else(|error| {
        errln!("error: {error}");
        false
    })
}

/// Stops a remote launch: no execution has the same id.
fn stop_launch(operator: &JobOperator, launch: LaunchId) -> Result<bool, CliError> {
    match operator.stop_launch(launch) {
        Err(JobOperatorError::NoSuchLaunch(_)) => Err(CliError::NothingToStop(JobExecutionId(launch.0))),
        Ok(true) => {
            outln!("launch {launch} has stopped");
            Ok(true)
        }
        Ok(false) => {
            outln!("requested launch {launch} to stop; it is still running");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
