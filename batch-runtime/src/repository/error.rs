//! What can go wrong in the repository.

use std::error::Error;
use std::fmt;

use crate::ids::JobExecutionId;

type Source = Box<dyn Error + Send + Sync>;

/// An error of the job repository.
#[derive(Debug)]
#[non_exhaustive]
pub enum RepositoryError {
    /// The URL names no database that this build can open.
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The database cannot be opened.
    Connect {
        /// The URL.
        url: String,
        /// The driver's error.
        source: Source,
        /// What the driver does not say, or empty.
        hint: &'static str,
    },
    /// The database's tables are not those of this version.
    Schema {
        /// The URL.
        url: String,
        /// What was found, and what to do.
        problem: String,
    },
    /// A statement failed.
    Database {
        /// What was being done, to complete "failed to".
        action: &'static str,
        /// The driver's error.
        source: Source,
    },
    /// Another runtime took the execution over: this one must stop and write nothing more.
    ///
    /// Spec: REPO-15
    Fenced {
        /// What was being done, to complete "failed to".
        action: &'static str,
    },
    /// The runtime itself failed; a panic message on standard error says where.
    Fault,
    /// The chunk transaction is not the one any more that was begun: the database rolled it back after an error that the
    /// writer did not return, or the writer committed or rolled back itself.
    TransactionEnded,
    /// A row holds what no version of this runtime or of Spring Batch writes.
    Corrupt {
        /// The row.
        row: String,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for RepositoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { url, problem } => write!(f, "`{url}` is no repository: {problem}"),
            Self::Connect { url, source, hint } => {
                write!(f, "cannot open the repository `{url}`: {}{hint}", one_line(source))
            }
            Self::Schema { url, problem } => write!(f, "the repository `{url}` cannot be used: {problem}"),
            Self::Database { action, source } => write!(f, "failed to {action}: {}", one_line(source)),
            Self::Fenced { action } => write!(
                f,
                "failed to {action}: another runtime has taken this execution over, so this one stops without writing"
            ),
            Self::TransactionEnded => f.write_str(
                "the chunk transaction was ended before its time: by the database, after an error that the writer did not \
                 return, or by the writer itself",
            ),
            Self::Fault => f.write_str("the runtime itself failed; please report the panic message above"),
            Self::Corrupt { row, problem } => write!(f, "{row} of the repository {problem}"),
        }
    }
}

/// The libraries of databases say some things in several lines, with tabs.
fn one_line(error: &Source) -> String {
    let text = error.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

impl Error for RepositoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Connect { source, .. } | Self::Database { source, .. } => source.source(),
            _ => None,
        }
    }
}

/// Why the repository refused to begin an execution.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// The instance has an execution that is running.
    Running {
        /// That execution.
        execution: JobExecutionId,
        /// Who runs it.
        owner: String,
    },
    /// An execution of the instance ended COMPLETED.
    Complete {
        /// That execution.
        execution: JobExecutionId,
    },
    /// The job is not restartable, and the instance has an execution already.
    NotRestartable {
        /// The last execution.
        execution: JobExecutionId,
    },
    /// An execution of the instance was abandoned.
    Abandoned {
        /// That execution.
        execution: JobExecutionId,
    },
    /// Its process has died again and again without a new checkpoint.
    CrashLoop {
        /// The last execution.
        execution: JobExecutionId,
        /// How often in a row.
        crashes: i64,
    },
    /// The execution that was to be recovered is not the last one, or no longer dead.
    Overtaken,
    /// No such execution.
    NoSuchExecution(JobExecutionId),
    /// The repository failed.
    Repository(RepositoryError),
}

impl From<RepositoryError> for ClaimError {
    fn from(error: RepositoryError) -> Self {
        Self::Repository(error)
    }
}
