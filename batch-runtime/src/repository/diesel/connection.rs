//! Connections to the repository's database: URL, settings, a small pool.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

use super::turn::{Turn, Turns};
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

    /// Whether there is a job repository already. Looks without changing anything.
    #[cfg(feature = "cli")]
    pub(super) fn holds_repository(&self) -> Result<bool, RepositoryError> {
        if !self.file.as_ref().is_some_and(|file| file.exists()) {
            return Ok(false);
        }
        // It waits like every other: a process that ends may hold the file for a moment.
        let mut connection = self.connect_to_look()?;
        let table = "SELECT name AS journal_mode FROM sqlite_master WHERE upper(name) = 'BATCH_JOB_INSTANCE'";
        let found: Result<Vec<JournalMode>, _> = diesel::sql_query(table).load(&mut connection.sqlite);
        found
            .map(|tables| !tables.is_empty())
            .map_err(|error| self.unusable(Box::new(error)))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The directory for the owners' lock files; none for a database that lives in memory. The database exists by now,
    /// and whoever comes to it by a symbolic link finds the same owners.
    pub(super) fn owners_directory(&self) -> Option<PathBuf> {
        let file = self.file.as_ref()?;
        let mut name = file
            .canonicalize()
            .unwrap_or_else(|_| file.clone())
            .into_os_string();
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
        let mut connection = self.connect_to_look()?;
        self.use_write_ahead_log(&mut connection)?;
        Ok(connection)
    }

    /// A connection that has not changed anything in the file yet, which may be another program's.
    pub(super) fn connect_to_look(&self) -> Result<RepositoryConnection, RepositoryError> {
        let mut sqlite =
            SqliteConnection::establish(&self.target).map_err(|error| self.unusable(Box::new(error)))?;
        let settings = format!(
            "PRAGMA busy_timeout = {BUSY_MILLIS}; PRAGMA synchronous = {}; PRAGMA foreign_keys = ON;",
            self.synchronous
        );
        sqlite
            .batch_execute(&settings)
            .map_err(|error| self.unusable(Box::new(error)))?;
        Ok(RepositoryConnection { sqlite })
    }

    pub(super) fn use_write_ahead_log(
        &self,
        connection: &mut RepositoryConnection,
    ) -> Result<(), RepositoryError> {
        use_write_ahead_log(&mut connection.sqlite).map_err(|error| self.unusable(Box::new(error)))
    }

    fn unusable(&self, source: Box<dyn std::error::Error + Send + Sync>) -> RepositoryError {
        RepositoryError::Connect {
            url: self.url.clone(),
            source,
            hint: self.hint(),
        }
    }
}

/// How long a writer waits for another one, of this process and of others. Longer than a chunk ought to take, and than a
/// lease lasts: whoever has waited in vain for so long has lost its lease anyway.
const BUSY_MILLIS: u64 = 60_000;

#[derive(QueryableByName)]
struct JournalMode {
    #[diesel(sql_type = diesel::sql_types::Text)]
    journal_mode: String,
}

/// The write-ahead log lets readers go on while one writes. Only the first connection ever switches to it, and the switch
/// does not wait for other connections, as everything else does.
fn use_write_ahead_log(sqlite: &mut SqliteConnection) -> QueryResult<()> {
    let begin = Instant::now();
    loop {
        let mode: JournalMode = diesel::sql_query("PRAGMA journal_mode").get_result(sqlite)?;
        // A database in memory has no log, and stays as it is.
        if mode.journal_mode == "wal" || mode.journal_mode == "memory" {
            return Ok(());
        }
        match sqlite.batch_execute("PRAGMA journal_mode = WAL") {
            Err(error) if begin.elapsed() < Duration::from_secs(10) => {
                tracing::debug!(%error, "trying again to switch to the write-ahead log");
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
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
    turns: Arc<Turns>,
    // A database in memory lives as long as a connection to it; this one is never lent.
    _anchor: Mutex<Option<RepositoryConnection>>,
}

impl Pool {
    pub(super) fn new(database: Database) -> Result<Self, RepositoryError> {
        let anchor = if database.file.is_none() {
            Some(database.connect()?)
        } else {
            None
        };
        let shared = Shared {
            database,
            idle: Mutex::default(),
            turns: Arc::default(),
            _anchor: Mutex::new(anchor),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
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

    /// Waits until this thread may write; for as long as it holds what it gets.
    pub(super) fn turn(&self) -> QueryResult<Turn> {
        self.turn_of(false)
    }

    fn turn_of(&self, hurried: bool) -> QueryResult<Turn> {
        let limit = Duration::from_millis(BUSY_MILLIS);
        let turn = self.shared.turns.take(limit, hurried);
        turn.ok_or_else(|| {
            let held = "one transaction of this process has held the database for a minute".to_owned();
            DieselError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(held))
        })
    }

    /// Runs `work` in a transaction that holds the write lock from its beginning, so that it never has to give up
    /// half-way because another writer came first.
    pub(super) fn write<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let _turn = self
            .turn()
            .map_err(|source| database_error::<E>(action, source))?;
        self.transaction("BEGIN IMMEDIATE", action, work)
    }

    /// As `write`, before all that wait in this process: for what keeps an execution alive, or ends it.
    pub(super) fn write_first<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let _turn = self
            .turn_of(true)
            .map_err(|source| database_error::<E>(action, source))?;
        self.transaction("BEGIN IMMEDIATE", action, work)
    }

    /// As `write`, for what may be lost with the machine's power until the next `write`: that a step has begun is nothing
    /// as long as nothing else of it is there. Saves the time until the disk has it. What follows makes it durable too,
    /// as SQLite's log is one sequence; and a process that dies loses nothing.
    pub(super) fn write_ahead<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        const SYNCED: &str = "FULL";
        let failed = |source: DieselError| database_error::<E>(action, source);
        let _turn = self.turn().map_err(failed)?;
        let mut connection = self.take()?;
        let synced = self.shared.database.synchronous == SYNCED;
        if synced {
            connection
                .sqlite
                .batch_execute("PRAGMA synchronous = NORMAL")
                .map_err(failed)?;
        }
        let value = transaction_on(&mut connection, "BEGIN IMMEDIATE", action, work)?;
        if synced {
            connection
                .sqlite
                .batch_execute("PRAGMA synchronous = FULL")
                .map_err(failed)?;
        }
        self.put_back(connection);
        Ok(value)
    }

    /// Runs queries on one snapshot.
    pub(super) fn read<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<RepositoryError>>,
    ) -> Result<T, RepositoryError> {
        self.transaction("BEGIN", action, work)
    }

    /// A connection whose transaction did not end well is closed, which rolls back. So there is no ROLLBACK that could
    /// fail and hide the cause.
    fn transaction<T, E: From<RepositoryError>>(
        &self,
        begin: &str,
        action: &'static str,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let mut connection = self.take()?;
        let value = transaction_on(&mut connection, begin, action, work)?;
        self.put_back(connection);
        Ok(value)
    }
}

fn database_error<E: From<RepositoryError>>(action: &'static str, source: DieselError) -> E {
    E::from(RepositoryError::Database {
        action,
        source: Box::new(source),
    })
}

fn transaction_on<T, E: From<RepositoryError>>(
    connection: &mut RepositoryConnection,
    begin: &str,
    action: &'static str,
    work: impl FnOnce(&mut SqliteConnection) -> Result<T, TransactionError<E>>,
) -> Result<T, E> {
    let failed = |source: DieselError| database_error::<E>(action, source);
    AnsiTransactionManager::begin_transaction_sql(&mut connection.sqlite, begin).map_err(failed)?;
    let value = work(&mut connection.sqlite).map_err(|error| match error {
        TransactionError::Refused(error) => error,
        TransactionError::Database(source) => failed(source),
    })?;
    AnsiTransactionManager::commit_transaction(&mut connection.sqlite).map_err(failed)?;
    Ok(value)
}

/// Why a transaction is rolled back.
pub(super) enum TransactionError<E> {
    /// A statement failed.
    Database(DieselError),
    /// The work itself says no.
    Refused(E),
}

impl TransactionError<RepositoryError> {
    /// As an error of the repository.
    pub(super) fn into_error(self, action: &'static str) -> RepositoryError {
        match self {
            Self::Refused(error) => error,
            Self::Database(source) => RepositoryError::Database {
                action,
                source: Box::new(source),
            },
        }
    }
}

impl<E> From<DieselError> for TransactionError<E> {
    fn from(error: DieselError) -> Self {
        Self::Database(error)
    }
}

/// The repository's database, for artifacts that open connections of their own.
#[derive(Clone)]
pub(crate) struct Connector {
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
