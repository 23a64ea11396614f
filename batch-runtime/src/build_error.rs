//! The errors of building a runtime.

use batch_xml::JobXmlErrors;
use thiserror::Error;

use crate::dispatch::{choices, shown_name};
use crate::repository::RepositoryError;

/// An error of [`BatchRuntimeBuilder::build`](crate::BatchRuntimeBuilder::build).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A batch.xml is invalid, or names an unusable loader.
    // Spec: LOADER-10, LOADER-12, LOADER-15
    #[error("cannot load the artifacts\n{0}")]
    BatchXml(JobXmlErrors),
    /// The repository cannot be opened.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// `tokio_handle` belongs to a runtime with one thread.
    // Spec: ASYNC-02
    #[error(
        "the tokio runtime has one thread, on which `async` methods of artifacts could wait for each other forever; use a runtime with \
         several threads: `#[tokio::main]` without `flavor = \"current_thread\"`, `tokio::runtime::Builder::new_multi_thread()`"
    )]
    CurrentThreadRuntime,
    /// The URL of a database beside the repository is not valid.
    #[error("the database `{}`: {problem}", shown_name(.name))]
    Database {
        /// The name that [`database`](crate::BatchRuntimeBuilder::database) gives it.
        name: String,
        /// What is wrong with the URL, without its password.
        problem: RepositoryError,
    },
    /// A database beside the repository would be in memory.
    #[error("the database `{}`: expected the URL of a PostgreSQL, MySQL or SQLite database, and no database in memory, of which each connection has its own", shown_name(.0))]
    NoDatabase(String),
    /// The thread of an observer cannot be started.
    #[error("cannot start the thread of an observer: {0}")]
    Observer(std::io::Error),
    /// The name of a notification target is not usable.
    #[error("{0}")]
    NotificationTarget(String),
    /// A transport connects hosts, but the repository is for processes of one host.
    #[error(
        "the transport `{0}` connects hosts, but a SQLite repository is for the processes of one; use PostgreSQL or MySQL, or a server at a \
         loopback address"
    )]
    SqliteForHosts(String),
    /// A dispatcher gives work to other processes, but the repository is in the memory of this one.
    // Spec: MEM-02
    #[error(
        "the dispatcher `{}` gives work to other processes, which cannot see the repository `memory:`; use `sqlite://PATH`, PostgreSQL or \
         MySQL", .0.escape_debug()
    )]
    InMemory(String),
    /// [`dispatch`](crate::BatchRuntimeBuilder::dispatch) names a dispatcher that the runtime does not have.
    #[error("unknown dispatcher `{}`; {}", shown_name(.name), choices(.name, .known))]
    UnknownDispatcher {
        /// The name.
        name: String,
        /// The dispatchers of the runtime.
        known: Vec<String>,
    },
}
