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
//! | 1 | the job ended FAILED, or its end could not be recorded; `stop`: it has not stopped yet |
//! | 2 | wrong usage, or the job could not be started |
//! | 3 | the job ended STOPPED |

mod args;
mod check;
mod explain;
mod graph;
mod output;
mod print;
mod progress;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use self::args::{Arguments, Verb};
use self::output::{Began, Output};
use crate::artifact::BatchArtifactLoader;
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::loader::Additions;
use crate::operator::{JobOperator, JobOperatorError};
use crate::repository;
use crate::runtime::{BatchRuntime, BatchRuntimeBuilder};
use crate::status::BatchStatus;

const DEFAULT_REPOSITORY: &str = "sqlite://batch.db";
const IN_MEMORY: &str = "sqlite://:memory:";

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
    additions: Additions,
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

    /// Adds a batch.xml that the program holds, see
    /// [`BatchRuntimeBuilder::batch_xml`](crate::BatchRuntimeBuilder::batch_xml).
    #[must_use]
    pub fn batch_xml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.additions.embedded.push((name.into(), text.into()));
        self
    }

    /// Sets the preferred artifact loader, see
    /// [`BatchRuntimeBuilder::artifact_loader`](crate::BatchRuntimeBuilder::artifact_loader).
    #[must_use]
    pub fn artifact_loader(mut self, loader: impl BatchArtifactLoader + 'static) -> Self {
        self.additions.loader = Some(Arc::new(loader));
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
            .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
            .without_time()
            .with_target(false)
            .try_init();
        self.run(arguments).unwrap_or_else(|problem| {
            print::err(format_args!("error: {problem}"));
            ExitCode::from(USAGE)
        })
    }

    fn run(self, arguments: Arguments) -> Result<ExitCode, String> {
        let mut builder = BatchRuntime::builder().additions(self.additions);
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
        let given = arguments.repository.is_some();
        let url = arguments
            .repository
            .or(self.repository)
            .unwrap_or_else(|| DEFAULT_REPOSITORY.into());
        let exists = || repository::exists(&url).map_err(|error| error.to_string());
        let url = match &arguments.verb {
            Verb::Start { .. } | Verb::Launch { .. } => url,
            // These open none.
            Verb::Check { .. } | Verb::Explain { .. } | Verb::Graph { .. } => url,
            // The others look at what there is, and make nothing.
            Verb::List { .. } if !given && !exists()? => IN_MEMORY.into(),
            _ if exists()? => url,
            _ => {
                return Err(format!(
                    "there is no repository `{}`",
                    repository::shown_url(&url)
                ));
            }
        };
        execute(builder.repository(url), arguments.verb)
    }
}

fn execute(builder: BatchRuntimeBuilder, verb: Verb) -> Result<ExitCode, String> {
    match verb {
        Verb::Start { job, parameters } => {
            let parameters = parameters.into_parameters()?;
            let operator = open(builder)?;
            started(&operator, operator.start(&job, parameters), Began::Otherwise)
        }
        Verb::Launch { job, parameters } => {
            let parameters = parameters.into_parameters()?;
            let operator = open(builder)?;
            started(&operator, operator.launch(&job, parameters), Began::ByParameters)
        }
        Verb::Restart {
            execution,
            parameters,
        } => {
            let parameters = parameters.into_parameters()?;
            let operator = open(builder)?;
            started(
                &operator,
                operator.restart(execution, parameters),
                Began::Otherwise,
            )
        }
        Verb::Stop { execution } => stop(&open(builder)?, execution).map_err(|error| error.to_string()),
        Verb::List { job: None, json } => shown(Output::new(json).jobs(&open(builder)?)),
        Verb::List { job: Some(job), json } => shown(Output::new(json).executions(&open(builder)?, &job)),
        Verb::Show { execution, json } => shown(Output::new(json).execution(&open(builder)?, execution)),
        Verb::Explain {
            job,
            parameters,
            json,
        } => {
            let parameters = parameters.into_parameters()?;
            let definitions = builder.definitions().map_err(|errors| errors.to_string())?;
            shown(explain::run(&definitions, &job, &parameters, json))
        }
        Verb::Graph {
            job,
            parameters,
            format,
            output,
        } => {
            let parameters = parameters.into_parameters()?;
            let definitions = builder.definitions().map_err(|errors| errors.to_string())?;
            graph::run(&definitions, &job, &parameters, format, output.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Verb::Check {
            job,
            json,
            parameters,
            deny_warnings,
        } => {
            let mut report = builder.check_only(job.as_deref(), &parameters.into_parameters()?);
            if deny_warnings {
                report = report.deny_warnings();
            }
            let right = check::print(&report, json);
            Ok(if right {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(USAGE)
            })
        }
    }
}

fn open(builder: BatchRuntimeBuilder) -> Result<JobOperator, String> {
    let runtime = builder.build().map_err(|error| error.to_string())?;
    Ok(runtime.job_operator())
}

fn shown(result: Result<(), JobOperatorError>) -> Result<ExitCode, String> {
    result
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| error.to_string())
}

fn started(
    operator: &JobOperator,
    execution: Result<JobExecutionId, JobOperatorError>,
    began: Began,
) -> Result<ExitCode, String> {
    execution
        .map(|execution| follow(operator, execution, began))
        .map_err(|error| error.to_string())
}

fn stop(operator: &JobOperator, execution: JobExecutionId) -> Result<ExitCode, JobOperatorError> {
    let stopped = operator.stop(execution)?;
    let state = if stopped {
        "has stopped"
    } else {
        "has been asked to stop, and is still running"
    };
    print::out(format_args!("execution {execution} {state}"));
    let ended = operator
        .job_execution(execution)?
        .filter(|ended| !ended.exit_message.is_empty());
    ended.into_iter().for_each(|ended| print::out(ended.exit_message));
    Ok(if stopped {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Waits for an execution that was started here, and shows how it goes on and ends. It ran, so whatever goes wrong now is
/// no wrong usage.
fn follow(operator: &JobOperator, execution: JobExecutionId, began: Began) -> ExitCode {
    let complain = |error: JobOperatorError| print::err(format_args!("error: {error}"));
    match progress::watch(operator, execution) {
        Ok(ended) => {
            Output::new(false)
                .summary(operator, &ended, began)
                .unwrap_or_else(complain);
            exit_code(&ended)
        }
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

fn exit_code(ended: &JobExecution) -> ExitCode {
    match ended.status {
        BatchStatus::Completed => ExitCode::SUCCESS,
        BatchStatus::Stopped => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    }
}
