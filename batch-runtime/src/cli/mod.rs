//! The command line: one line in a program's `main` gives every verb of the operator.
//!
//! ```no_run
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     batch_runtime::cli::main()
//! }
//! ```
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | the job ended COMPLETED, or the verb did what it was asked for |
//! | 1 | the job ended FAILED, or its end could not be recorded |
//! | 2 | wrong usage, or the job could not be started |
//! | 3 | the job ended STOPPED |

mod args;
mod output;
mod progress;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use self::args::{Arguments, Verb};
use self::output::Output;
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::operator::{JobOperator, JobOperatorError};
use crate::runtime::BatchRuntime;
use crate::status::BatchStatus;

/// Exit code of wrong usage and of a job that could not be started.
const USAGE: u8 = 2;

/// Runs the command line with its defaults: jobs in the current directory, repository `sqlite://batch.db`.
pub fn main() -> ExitCode {
    Cli::new().main()
}

/// A command line with defaults of the program's own.
#[derive(Clone, Debug, Default)]
pub struct Cli {
    job_path: Option<String>,
    repository: Option<String>,
    system: Vec<(String, String)>,
}

impl Cli {
    /// The usual defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the jobs are when neither `--job-path` nor `-Djavax.jobpath` says so.
    #[must_use]
    pub fn job_path(mut self, directories: impl Into<String>) -> Self {
        self.job_path = Some(directories.into());
        self
    }

    /// Where the repository is when `--repository` does not say so.
    #[must_use]
    pub fn repository(mut self, url: impl Into<String>) -> Self {
        self.repository = Some(url.into());
        self
    }

    /// Sets a system property, which `-D` may override.
    #[must_use]
    pub fn system_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.system.push((name.into(), value.into()));
        self
    }

    /// Reads the arguments of the process and does what they say.
    pub fn main(self) -> ExitCode {
        let arguments = match Arguments::try_parse() {
            Ok(arguments) => arguments,
            Err(error) => {
                // `--help` and `--version` arrive here too, and are no errors.
                let code = if error.use_stderr() { USAGE } else { 0 };
                let _ = error.print();
                return ExitCode::from(code);
            }
        };
        let _ = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .without_time()
            .with_target(false)
            .try_init();
        self.run(arguments).unwrap_or_else(|problem| {
            eprintln!("error: {problem}");
            ExitCode::from(USAGE)
        })
    }

    fn run(self, arguments: Arguments) -> Result<ExitCode, String> {
        let mut builder = BatchRuntime::builder();
        for (name, value) in self.system {
            builder = builder.system_property(name, value);
        }
        let mut on_command_line = false;
        for (name, value) in arguments.system {
            on_command_line |= name == "javax.jobpath";
            builder = builder.system_property(name, value);
        }
        if let Some(directories) = arguments.job_path.or(self.job_path.filter(|_| !on_command_line)) {
            builder = builder.job_path(directories);
        }
        if let Some(url) = arguments.repository.or(self.repository) {
            builder = builder.repository(url);
        }
        let runtime = builder.build().map_err(|error| error.to_string())?;
        execute(&runtime.job_operator(), arguments.verb).map_err(|error| error.to_string())
    }
}

fn execute(operator: &JobOperator, verb: Verb) -> Result<ExitCode, JobOperatorError> {
    match verb {
        Verb::Start { job, parameters } => {
            follow(operator, operator.start(&job, parameters.into_parameters())?)
        }
        Verb::Launch { job, parameters } => {
            follow(operator, operator.launch(&job, parameters.into_parameters())?)
        }
        Verb::Restart {
            execution,
            parameters,
        } => follow(
            operator,
            operator.restart(execution, parameters.into_parameters())?,
        ),
        Verb::Stop { execution } => {
            let stopped = operator.stop(execution)?;
            let state = if stopped {
                "has stopped"
            } else {
                "has been asked to stop, and is still running"
            };
            println!("execution {execution} {state}");
            Ok(ExitCode::SUCCESS)
        }
        Verb::List { json } => Output::new(json).jobs(operator).map(|()| ExitCode::SUCCESS),
        Verb::Show { execution, json } => Output::new(json)
            .execution(operator, execution)
            .map(|()| ExitCode::SUCCESS),
        Verb::Check {
            job,
            json,
            parameters,
        } => {
            let right = Output::new(json).check(operator, job.as_deref(), &parameters.into_parameters());
            Ok(if right {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(USAGE)
            })
        }
    }
}

/// Waits for an execution that was started here, and shows how it goes on and ends.
fn follow(operator: &JobOperator, execution: JobExecutionId) -> Result<ExitCode, JobOperatorError> {
    let ended = match progress::watch(operator, execution) {
        // It ran, and did not end well.
        Err(error @ JobOperatorError::JobExecutionLost { .. }) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::FAILURE);
        }
        other => other?,
    };
    Output::new(false).summary(operator, &ended)?;
    Ok(exit_code(&ended))
}

fn exit_code(ended: &JobExecution) -> ExitCode {
    match ended.status {
        BatchStatus::Completed => ExitCode::SUCCESS,
        BatchStatus::Stopped => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    }
}
