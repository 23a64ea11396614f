//! `abandon`: gives up an execution.

use std::process::ExitCode;

use batch_runtime::JobExecutionId;
use clap::Args;

use super::execution_id;
use crate::print::outln;
use crate::session::{Outcome, Session};

/// Abandons an execution that failed, stopped or died: its instance can no longer be resumed
#[derive(Args, Debug)]
pub(crate) struct Abandon {
    /// Id of the execution
    #[arg(value_parser = execution_id)]
    execution: JobExecutionId,
}

impl Abandon {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let id = self.execution;
        session.open()?.abandon(id)?;
        outln!("execution {id} is abandoned: its instance can no longer be resumed");
        Ok(ExitCode::SUCCESS)
    }
}
