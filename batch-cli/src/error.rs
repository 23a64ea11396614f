//! The errors of commands. Each displays as the text after `error: `.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use batch_runtime::operator::StartError;
use batch_runtime::xml::JobXmlErrors;
use batch_runtime::{
    BuildError, JobExecutionId, JobInstanceId, JobOperatorError, LaunchId, repository::RepositoryError,
};

/// Exit code of wrong usage and of a job that could not be started.
pub(crate) const USAGE: u8 = 2;
/// Exit code of a job that was not started, because its instance is complete.
const COMPLETE: u8 = 10;
/// Exit code of a job that was not started, because its instance is running.
const RUNNING: u8 = 11;
/// Exit code of a job that was not started and may be started later: EX_TEMPFAIL of sysexits.h.
pub(crate) const LATER: u8 = 75;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Operator(#[from] JobOperatorError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Definitions(#[from] JobXmlErrors),
    /// The problems, each with its source.
    #[error("{}", .0.join("\nerror: "))]
    Settings(Vec<String>),
    #[error("{0}")]
    Usage(String),
    #[error("cannot {action} `{}`: {source}", .path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{place}: {problem}")]
    ParameterFile { place: String, problem: String },
    #[error(
        "`-D{0}=..` sets the system property `{0}`, and the job uses a parameter `D{0}`: for the parameter, which does not identify the \
         instance, write `-- -D{0}=1` after all options; for the property, `-D {0}=1`"
    )]
    PropertyOrParameter(String),
    #[error("parameter `{0}` is given twice")]
    ParameterTwice(String),
    #[error("no artifact has the name `{0}`{1}; `artifacts` lists all")]
    NoArtifact(String, String),
    #[error("repository `{0}` does not exist; `launch` or `db migrate` creates it")]
    NoRepository(String),
    #[error(
        "the tables of the repository `{0}` are not up to date, and this command changes nothing; `db migrate` upgrades them, after which \
         earlier versions cannot use them"
    )]
    OldTables(String),
    #[error(
        "invalid name `{0}` of a crate: use letters, digits, `-` and `_`, starting with a letter, such as `payroll`; names of its \
         dependencies and of Cargo's folders are reserved"
    )]
    CrateName(String),
    #[error("execution {0} of job `{1}` is complete; pass `--completed` to abandon it anyway")]
    Complete(JobExecutionId, String),
    #[error(transparent)]
    Worker(#[from] batch_runtime::worker::WorkerError),
    #[cfg(feature = "nats")]
    #[error(transparent)]
    Nats(#[from] batch_nats::NatsError),
    #[cfg(not(feature = "nats"))]
    #[error(
        "`dispatch` is `{0}`, and this program is built without NATS: enable the feature `nats` of `batch-cli`"
    )]
    NoNats(String),
    #[cfg(feature = "console")]
    #[error(transparent)]
    Console(#[from] batch_console::StartError),
    #[error("no job execution and no remote launch has the id {0}; `list` and `launches` show them")]
    NothingToStop(JobExecutionId),
    #[error(
        "job `{0}` has no running execution, and no launch of it is queued; `list {0}` shows its executions"
    )]
    NothingRuns(String),
    #[error("{0}")]
    NoExecution(String),
    #[error("launch {0} was {1}")]
    LaunchNotRun(LaunchId, String),
    #[error("unknown job instance {0}")]
    NoInstance(JobInstanceId),
    #[error("cannot write a report to `{}`: expected a file name that ends with .html or .md", .0.display())]
    ReportFormat(PathBuf),
    #[error("cannot serve health and metrics at {address}: {source}; choose another `metrics-port`")]
    Metrics {
        address: SocketAddr,
        source: Box<dyn Error + Send + Sync>,
    },
}

impl CliError {
    /// Returns the exit code of a command that has failed before it started anything.
    // Spec: CLI-02
    pub(crate) fn exit_code(&self) -> u8 {
        let is_temporary = match self {
            Self::Operator(JobOperatorError::JobInstanceAlreadyComplete { .. }) => return COMPLETE,
            Self::Operator(
                JobOperatorError::JobExecutionAlreadyRunning { .. }
                | JobOperatorError::JobRestart {
                    cause: StartError::Running { .. },
                    ..
                },
            ) => return RUNNING,
            Self::Operator(error) => error.is_temporary(),
            Self::Build(BuildError::Repository(error)) | Self::Repository(error) => error.is_temporary(),
            Self::Worker(error) => error.is_temporary(),
            _ => false,
        };
        if is_temporary { LATER } else { USAGE }
    }

    /// Wraps an error of the file system; `action` completes "cannot".
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/operations/schedulers.rs` tests the other codes with processes.
    // Spec: CLI-02
    #[test]
    fn a_server_that_cannot_be_reached_may_be_later() {
        let connect = |url: &str| RepositoryError::Connect {
            url: url.into(),
            source: "refused".into(),
            hint: "",
        };
        let failed = || RepositoryError::Database {
            action: "read the instance",
            source: "the connection is lost".into(),
        };
        for (error, code) in [
            (CliError::Build(connect("postgres://host/db").into()), LATER),
            (CliError::Repository(connect("mysql://host/db")), LATER),
            (
                CliError::Build(connect("sqlite://no/such/folder.db").into()),
                USAGE,
            ),
            (CliError::Operator(failed().into()), LATER),
            (CliError::Operator(RepositoryError::Fault.into()), USAGE),
        ] {
            assert_eq!(error.exit_code(), code, "{error}");
        }
    }
}
