//! `stop`: requests an execution to stop.

use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, LaunchId};
use clap::Args;

use super::execution_id;
use crate::error::CliError;
use crate::print::{out, outln};
use crate::session::{Outcome, Session, exit_code};

/// Requests a running execution, in whatever process, to stop after the current item, and waits up to 5 seconds
#[derive(Args, Debug)]
pub(crate) struct Stop {
    /// Id of the execution, or of a remote launch
    #[arg(value_parser = execution_id)]
    execution: JobExecutionId,
}

impl Stop {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let operator = session.open()?;
        let id = self.execution;
        let has_stopped = match operator.stop(id) {
            Err(JobOperatorError::NoSuchJobExecution(_)) => return stop_launch(&operator, id),
            stopped => stopped?,
        };
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
        Ok(exit_code(has_stopped))
    }
}

/// Stops a remote launch: no execution has the same id.
fn stop_launch(operator: &JobOperator, id: JobExecutionId) -> Outcome {
    match operator.stop_launch(LaunchId(id.0)) {
        Err(JobOperatorError::NoSuchLaunch(_)) => Err(CliError::NothingToStop(id)),
        Ok(true) => {
            outln!("launch {id} has stopped");
            Ok(exit_code(true))
        }
        Ok(false) => {
            outln!("requested launch {id} to stop; it is still running");
            Ok(exit_code(false))
        }
        Err(error) => Err(error.into()),
    }
}
