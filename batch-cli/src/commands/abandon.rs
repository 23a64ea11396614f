//! `abandon`: gives up an execution.

use std::process::ExitCode;

use batch_runtime::{BatchStatus, JobExecutionId};
use clap::Args;

use super::execution_id;
use crate::error::CliError;
use crate::print::outln;
use crate::session::{Outcome, Session};

/// Abandons an execution that failed, stopped or died, so that its instance can no longer be resumed
#[derive(Args, Debug)]
pub(crate) struct Abandon {
    /// Id of the execution
    #[arg(value_parser = execution_id)]
    execution: JobExecutionId,
    /// Abandons the execution even if it is COMPLETED, for example because its result is wrong
    #[arg(long)]
    completed: bool,
}

impl Abandon {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let id = self.execution;
        let operator = session.open()?;
        let found = operator.job_execution(id)?;
        if let Some(found) = found.filter(|found| found.status == BatchStatus::Completed && !self.completed) {
            return Err(CliError::Complete(id, found.job_name));
        }
        operator.abandon(id)?;
        outln!("execution {id} is abandoned: its instance can no longer be resumed");
        Ok(ExitCode::SUCCESS)
    }
}
