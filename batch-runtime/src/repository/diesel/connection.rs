//! Connections to the repository's database: URL, settings, a small pool.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error as DieselError;

use crate::repository::RepositoryError;

/// A connection to the database that holds the job repository.
pub struct RepositoryConnection {
    sqlite: SqliteConnection,
}

impl RepositoryConnection {
    /// The diesel connection, when the repository is on SQLite.
    ///
    /// # Errors
    /// When it is on another database.
    pub fn sqlite(&mut self) -> QueryResult<&mut SqliteConnection> {
        Ok(&mut self.sqlite)
    }
}

/// Where the database is, and how its connections are set up.
#[derive(Clone, Debug)]
pub(super) struct Database {
    url: String,
    target: String,
    file: Option<PathBuf>,
    synchronous: &'static str,
}

impl Database {
    /// Reads `sqlite://PATH`, `sqlite://:memory:`, each with `?synchronous=full|normal` if wanted.
    pub(super) fn from_url(url: &str) -> Result<Self, RepositoryError> {
        let refuse = |problem: String| RepositoryError::Url {
            url: url.to_owned(),
            problem,
        };
        let Some(rest) = url.strip_prefix("sqlite:") else {
            return Err(refuse("expected `sqlite://PATH` or `sqlite://:memory:`".into()));
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        let mut synchronous = "FULL";
        for option in options.split('&').filter(|option| !option.is_empty()) {
            synchronous = match option {
                "synchronous=full" => "FULL",
                "synchronous=normal" => "NORMAL",
                _ => {
                    return Err(refuse(format!(
                        "unknown option `{option}`; known: `synchronous=full|normal`"
                    )));
                }
            };
        }
        match path {
            "" => Err(refuse("the path is missing".into())),
            ":memory:" => {
                // SQLite's memdb file system, unlike `:memory:`, lets several connections see one database.
                static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
                let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let target = format!("file:/batch-memory-{number}?vfs=memdb");
                Ok(Self {
                    url: url.to_owned(),
                    target,
                    file: None,
                    synchronous,
                })
            }
            path => {
                // The program may change its directory later; the database stays where it was.
                let file = std::path::absolute(path).map_err(|error| refuse(error.to_string()))?;
                let target = file
                    .to_str()
                    .ok_or_else(|| refuse("the path is no text".into()))?
                    .to_owned();
                Ok(Self {
                    url: url.to_owned(),
                    target,
                    file: Some(file),
                    synchronous,
                })
            }
        }
    }

    /// Whether the database is there already.
    #[cfg(feature = "cli")]
    pub(super) fn exists(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.exists())
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The directory for the owners' lock files; none for a database that lives in memory.
    pub(super) fn owners_directory(&self) -> Option<PathBuf> {
        let mut name = self.file.as_ref()?.clone().into_os_string();
        name.push("-owners");
        Some(name.into())
    }

    /// What SQLite does not say when it cannot open a file.
    fn hint(&self) -> &'static str {
        let Some(file) = &self.file else { return "" };
        if file.is_dir() {
            return " (it is a directory)";
        }
        match file.parent() {
            Some(folder) if !folder.exists() => " (its folder does not exist)",
            _ => "",
        }
    }

    pub(super) fn connect(&self) -> Result<RepositoryConnection, RepositoryError> {
        let fail = |source: Box<dyn std::error::Error + Send + Sync>| RepositoryError::Connect {
            url: self.url.clone(),
            source,
            hint: self.hint(),
        };
        let mut sqlite = SqliteConnection::establish(&self.target).map_err(|error| fail(Box::new(error)))?;
        // A second writer waits for the first; the write-ahead log lets readers go on meanwhile.
        let settings = format!(
            "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = {}; PRAGMA foreign_keys = ON;",
            self.synchronous
        );
        sqlite
            .batch_execute(&settings)
            .map_err(|error| fail(Box::new(error)))?;
        Ok(RepositoryConnection { sqlite })
    }
}

/// Idle connections, kept for the next use. One that failed is not put back: closing it rolls its transaction back.
#[derive(Clone)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    database: Database,
    idle: Mutex<Vec<RepositoryConnection>>,
}

impl Pool {
    pub(super) fn new(database: Database) -> Self {
        Self {
            shared: Arc::new(Shared {
                database,
                idle: Mutex::new(Vec::new()),
            }),
        }
    }

    pub(super) fn database(&self) -> &Database {
        &self.shared.database
    }

    pub(super) fn take(&self) -> Result<RepositoryConnection, RepositoryError> {
        let idle = self
            .shared
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        idle.map_or_else(|| self.shared.database.connect(), Ok)
    }

    pub(super) fn put_back(&self, connection: RepositoryConnection) {
        self.shared
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
    }

    /// Runs `work` in a transaction that holds the write lock from its beginning, so that it never has to give up
    /// half-way because another writer came first.
    pub(super) fn write<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let mut connection = self.take()?;
        match connection.sqlite.immediate_transaction(work) {
            Ok(value) => {
                self.put_back(connection);
                Ok(value)
            }
            Err(TransactionError::Refused(error)) => {
                self.put_back(connection);
                Err(error)
            }
            Err(TransactionError::Database(source)) => Err(RepositoryError::Database {
                action,
                source: Box::new(source),
            }
            .into()),
        }
    }

    /// Runs queries that write nothing.
    pub(super) fn read<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<RepositoryError>>,
    ) -> Result<T, RepositoryError> {
        let mut connection = self.take()?;
        // One snapshot for all the queries.
        match connection.sqlite.transaction(work) {
            Ok(value) => {
                self.put_back(connection);
                Ok(value)
            }
            Err(TransactionError::Refused(error)) => Err(error),
            Err(TransactionError::Database(source)) => Err(RepositoryError::Database {
                action,
                source: Box::new(source),
            }),
        }
    }
}

/// Why a transaction is rolled back.
pub(super) enum TransactionError<E> {
    /// A statement failed.
    Database(DieselError),
    /// The work itself says no.
    Refused(E),
}

impl<E> From<DieselError> for TransactionError<E> {
    fn from(error: DieselError) -> Self {
        Self::Database(error)
    }
}

/// The repository's database, for artifacts that open connections of their own.
#[derive(Clone)]
pub struct Connector {
    pool: Pool,
}

impl Connector {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> Result<RepositoryConnection, RepositoryError> {
        self.pool.database().connect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_the_reason() {
        let check = |url: &str, problem: &str| {
            let error = Database::from_url(url).unwrap_err().to_string();
            assert!(error.contains(url) && error.contains(problem), "{error}");
        };
        check("oracle://x", "expected `sqlite://PATH`");
        check("sqlite://", "the path is missing");
        check(
            "sqlite://a.db?synchronous=off",
            "unknown option `synchronous=off`",
        );
        let file = Database::from_url("sqlite:///tmp/a.db?synchronous=normal").unwrap();
        assert_eq!((file.target.as_str(), file.synchronous), ("/tmp/a.db", "NORMAL"));
        assert_eq!(file.owners_directory(), Some("/tmp/a.db-owners".into()));
        assert_eq!(
            Database::from_url("sqlite://:memory:")
                .unwrap()
                .owners_directory(),
            None
        );
    }
}
