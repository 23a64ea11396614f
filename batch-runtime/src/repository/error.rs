//! The errors of the repository.

use std::error::Error;

use super::DatabaseKind;
use super::diesel::{ErrorClass, class_of};
use crate::error::{error_chain, one_line};
use crate::ids::JobExecutionId;

type Source = Box<dyn Error + Send + Sync>;

/// An error of the job repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// The URL does not name a supported database.
    #[error("unsupported repository `{url}`: {problem}")]
    Url {
        /// The URL.
        url: String,
        /// The reason.
        problem: String,
    },
    /// The database cannot be opened.
    #[error("cannot open the repository `{url}`: {}{hint}", one_line(&source.to_string()))]
    Connect {
        /// The URL.
        url: String,
        /// The driver's error.
        source: Source,
        /// A hint that the driver's message lacks, or empty.
        hint: &'static str,
    },
    /// A database beside the repository cannot be opened.
    #[error("cannot open the database `{url}`: {}{hint}", one_line(&source.to_string()))]
    ConnectOther {
        /// The URL.
        url: String,
        /// The driver's error.
        source: Source,
        /// A hint that the driver's message lacks, or empty.
        hint: &'static str,
    },
    /// The database's tables are not of this version.
    #[error("cannot use the repository `{url}`: {problem}")]
    Schema {
        /// The URL.
        url: String,
        /// The reason, and how to fix it.
        #[source]
        problem: Source,
    },
    /// A statement failed.
    #[error("failed to {action}: {}", one_line(&error_chain(&**source)))]
    Database {
        /// The action, to complete "failed to".
        action: &'static str,
        /// The driver's error.
        source: Source,
    },
    /// Another runtime took the execution over, so this one stops and writes nothing more.
    // Spec: REPO-15
    #[error(
        "failed to {action}: another runtime has taken this execution over, so this one stops without writing"
    )]
    Fenced {
        /// The action, to complete "failed to".
        action: &'static str,
    },
    /// A bug of the runtime; the panic message on standard error has details.
    #[error("the runtime itself failed; please report the panic message above")]
    Fault,
    /// The chunk transaction has ended early: the database rolled it back after an error that the writer did not
    /// return, or the writer committed or rolled back itself.
    #[error(
        "the chunk transaction has ended early: by the database, after an error that the writer did not return, or by the \
         writer itself"
    )]
    TransactionEnded,
    /// The repository is in the memory of this process.
    // Spec: MEM-03
    #[error("the repository `memory:` has no {missing}; use `sqlite://PATH`, PostgreSQL or MySQL")]
    InMemory {
        /// What it does not have.
        missing: &'static str,
    },
    /// A row contains data that no version of this runtime or of Spring Batch writes.
    #[error("{row} of the repository {problem}")]
    Corrupt {
        /// The row.
        row: String,
        /// The reason.
        #[source]
        problem: Source,
    },
}

/// The hint for a file of SQLite that does not exist.
pub(crate) const MISSING_FILE: &str = " (the file does not exist)";

impl RepositoryError {
    /// Returns the error of a database beside the repository.
    pub(crate) fn of_other_database(self) -> Self {
        match self {
            Self::Connect { url, source, hint } => Self::ConnectOther {
                url,
                source,
                hint: match hint {
                    MISSING_FILE => " (the file does not exist; only the file of the repository is created)",
                    hint => hint,
                },
            },
            other => other,
        }
    }

    /// Returns the class of the error, wherever it has occurred.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connect { url, source, .. } | Self::ConnectOther { url, source, .. }
                if DatabaseKind::named_in(url) == Some(DatabaseKind::Sqlite) =>
            {
                let text = source.to_string().to_lowercase();
                let is_temporary = ["is full", "no space left", "locked", "busy"];
                match is_temporary.iter().any(|part| text.contains(part)) {
                    true => ErrorClass::Resource,
                    // A file that cannot be opened is the wrong one.
                    false => ErrorClass::Definition,
                }
            }
            Self::Connect { source, .. } | Self::ConnectOther { source, .. } => {
                class_of(&**source).unwrap_or(ErrorClass::Connection)
            }
            Self::Database { source, .. } => class_of(&**source).unwrap_or(ErrorClass::Resource),
            Self::Schema { problem, .. } => class_of(&**problem).unwrap_or(ErrorClass::Definition),
            Self::Corrupt { .. } => ErrorClass::Data,
            _ => ErrorClass::Definition,
        }
    }

    /// Returns whether the same call may succeed later without a change: by the [class](Self::class) of the error.
    pub fn is_temporary(&self) -> bool {
        self.class().is_temporary()
    }
}

/// The reason why the repository rejects the start of an execution.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// The instance has an execution that is running.
    Running {
        /// That execution.
        execution: JobExecutionId,
        /// The lease holder.
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
    /// It is not known how an execution of the instance ended.
    UnknownStatus {
        /// That execution.
        execution: JobExecutionId,
    },
    /// The process of the instance died repeatedly without a new checkpoint.
    CrashLoop {
        /// The last execution.
        execution: JobExecutionId,
        /// The number of crashes in a row.
        crashes: i64,
    },
    /// Another execution of the job has its turn.
    NotItsTurn {
        /// That execution.
        execution: JobExecutionId,
    },
    /// The execution to recover is not the last one, or not dead any more.
    TakenOver,
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
