//! The errors of commands. Each displays as the text after `error: `.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use batch_runtime::xml::JobXmlErrors;
use batch_runtime::{
    BuildError, JobExecutionId, JobInstanceId, JobOperatorError, repository::RepositoryError,
};

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
    #[error("parameter `{0}` is given twice")]
    ParameterTwice(String),
    #[error("repository `{0}` does not exist; `launch` or `db migrate` creates it")]
    NoRepository(String),
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
    #[error("unknown job instance {0}")]
    NoInstance(JobInstanceId),
    #[error("cannot write a report to `{}`: expected a file name that ends with .html or .md", .0.display())]
    ReportFormat(PathBuf),
    #[error("cannot serve metrics at {address}: {source}; choose another `metrics-port`")]
    Metrics {
        address: SocketAddr,
        source: Box<dyn Error + Send + Sync>,
    },
}

impl CliError {
    /// Wraps an error of the file system; `action` completes "cannot".
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
