//! `explain`: a job as it would run, with the origin of every value.

mod sentence;
mod text;

use std::process::ExitCode;

use clap::Args;
use serde_json::json as value;

use crate::json;
use crate::parameters::Parameters;
use crate::session::{Outcome, Session};

/// Shows a job as it would run: elements, artifacts with their types, properties with the origin of each value
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// Id of the job
    job: String,
    #[command(flatten)]
    parameters: Parameters,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let parameters = self.parameters.into_parameters()?;
        let explanation = session.definitions()?.explain(&self.job, &parameters)?;
        if self.json {
            json::print(&value!(explanation));
        } else {
            let identifies = |name: &str| {
                parameters
                    .iter()
                    .any(|(given, parameter)| given == name && parameter.identifying)
            };
            text::print(&explanation, identifies);
        }
        Ok(ExitCode::SUCCESS)
    }
}
