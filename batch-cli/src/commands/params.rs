//! `params`: the parameters of an execution.

use std::process::ExitCode;

use batch_runtime::parameters::{JobParameter, NamedParameter};
use batch_runtime::{JobExecutionId, ParameterValue};
use clap::Args;
use serde_json::{Value, json as value};

use super::execution_id;
use crate::json;
use crate::parameters::to_line;
use crate::print::{errln, out};
use crate::session::{Outcome, Session};

/// Prints the parameters of an execution, each as a line of a file for `launch JOB @FILE`
#[derive(Args, Debug)]
pub(crate) struct Params {
    /// Id of the execution
    #[arg(value_parser = execution_id)]
    execution: JobExecutionId,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Params {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let parameters = session.open_to_read()?.parameters(self.execution)?;
        if self.json {
            json::print(
                &parameters
                    .iter()
                    .map(|(name, parameter)| to_json(name, parameter))
                    .collect(),
            );
            return Ok(ExitCode::SUCCESS);
        }
        let mut code = ExitCode::SUCCESS;
        for (name, parameter) in parameters.iter() {
            let named = NamedParameter {
                name: name.to_owned(),
                parameter: parameter.clone(),
            };
            match to_line(&named) {
                Some(line) => out(line),
                None => {
                    errln!(
                        "error: the name of the parameter `{}` cannot be written in a file",
                        name.escape_debug()
                    );
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    }
}

fn to_json(name: &str, parameter: &JobParameter) -> Value {
    let (kind, value) = match &parameter.value {
        ParameterValue::Null(kind) => {
            return value!({
                "name": name, "type": kind.to_string(), "value": null, "identifying": parameter.identifying
            });
        }
        ParameterValue::String(text) => ("string", value!(text)),
        ParameterValue::Long(number) => ("long", value!(number)),
        ParameterValue::Double(number) => ("double", value!(number)),
        ParameterValue::Date(time) => ("date", value!(time.to_string())),
        ParameterValue::Secret(reference) => ("secret", value!(reference.to_string())),
        ParameterValue::Java(java) => (java.class.as_str(), value!(java.text)),
    };
    value!({ "name": name, "type": kind, "value": value, "identifying": parameter.identifying })
}
