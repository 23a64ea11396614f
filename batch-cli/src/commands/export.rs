//! `export`: an instance as a line of JSON.

use std::process::ExitCode;

use batch_runtime::JobInstanceId;
use clap::Args;

use super::instance_id;
use crate::error::CliError;
use crate::json;
use crate::session::{Outcome, Session};

/// Prints an instance with all its executions and steps, as a line of JSON
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// Id of the instance
    #[arg(value_parser = instance_id)]
    instance: JobInstanceId,
}

impl Export {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let line = session.open_to_read()?.export(self.instance)?;
        json::print_text(&line.ok_or(CliError::NoInstance(self.instance))?);
        Ok(ExitCode::SUCCESS)
    }
}
