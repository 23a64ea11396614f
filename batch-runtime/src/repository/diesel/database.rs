//! What the databases have in common: how transactions begin and end, and a small pool of connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

use super::connection::RepositoryConnection;
use super::prefix::{Session, TablePrefix};
use crate::repository::RepositoryError;

/// A database of one kind, and how its connections are set up.
pub(super) trait Database: Send + Sync + Sized + 'static {
    /// diesel's connection.
    type Connection: Connection<TransactionManager = AnsiTransactionManager>
        + Into<RepositoryConnection>
        + Send;

    /// The right to write; something only where one writer at a time is all that there can be.
    type Turn: Send;

    /// Begins a transaction that writes. Every statement of it sees what has been committed before the statement.
    const BEGIN_WRITE: &'static str;
    /// Begins a transaction that reads, all of it the same state.
    const BEGIN_READ: &'static str;
    /// Begins a transaction that writes, and sets the savepoint `batch_chunk`.
    const BEGIN_CHUNK: &'static str;

    /// A new connection, ready for use.
    fn connect(&self) -> Result<Self::Connection, RepositoryError>;

    /// Waits until this thread may write; who is `hurried` comes before all that wait in this process.
    fn turn(&self, hurried: bool) -> QueryResult<Self::Turn>;

    /// As `BEGIN_WRITE`, for what may be lost with the machine's power until something else is written; and what is to be
    /// done after the commit.
    fn begin_ahead(&self) -> (&'static str, Option<&'static str>);

    /// Whether the database is gone when nobody is connected to it.
    fn lives_by_its_connections(&self) -> bool {
        false
    }

    /// Whether there is something between this process and the database that a connection can be lost by.
    const IS_REMOTE: bool;
}

/// How often a transaction is tried that another one got in the way of. Each time one of them has got through.
const ATTEMPTS: u32 = 100;

/// Idle connections, kept for the next use. One that failed is not put back: closing it rolls its transaction back.
pub(super) struct Pool<D: Database> {
    shared: Arc<Shared<D>>,
}

impl<D: Database> Clone for Pool<D> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

struct Shared<D: Database> {
    database: D,
    prefix: TablePrefix,
    /// How long one tries to come to the database again when a connection was lost.
    patience: Duration,
    idle: Mutex<Vec<Session<D::Connection>>>,
    // A database in memory lives as long as a connection to it; this one is never lent.
    _anchor: Mutex<Option<D::Connection>>,
}

/// Opens connections for artifacts.
trait Connect: Send + Sync {
    fn connect(&self) -> Result<RepositoryConnection, RepositoryError>;
}

impl<D: Database> Connect for Shared<D> {
    fn connect(&self) -> Result<RepositoryConnection, RepositoryError> {
        self.database.connect().map(Into::into)
    }
}

/// The repository's database, for artifacts that open connections of their own.
#[derive(Clone)]
pub(crate) struct Connector {
    shared: Arc<dyn Connect>,
}

impl Connector {
    /// A new connection.
    pub(crate) fn connect(&self) -> Result<RepositoryConnection, RepositoryError> {
        self.shared.connect()
    }
}

impl<D: Database> Pool<D> {
    pub(super) fn new(database: D, prefix: TablePrefix, patience: Duration) -> Result<Self, RepositoryError> {
        let anchor = if database.lives_by_its_connections() {
            Some(database.connect()?)
        } else {
            None
        };
        let shared = Shared {
            database,
            prefix,
            patience,
            idle: Mutex::default(),
            _anchor: Mutex::new(anchor),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    pub(super) fn connector(&self) -> Connector {
        let shared: Arc<Shared<D>> = Arc::clone(&self.shared);
        Connector { shared }
    }

    fn idle(&self) -> Option<Session<D::Connection>> {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop()
    }

    #[cfg(test)]
    pub(super) fn take(&self) -> Result<Session<D::Connection>, RepositoryError> {
        self.idle().map_or_else(|| self.connect(), Ok)
    }

    fn connect(&self) -> Result<Session<D::Connection>, RepositoryError> {
        let connection = self.shared.database.connect()?;
        Ok(Session::new(connection, self.shared.prefix.clone()))
    }

    pub(super) fn put_back(&self, connection: Session<D::Connection>) {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
    }

    /// Waits until this thread may write; for as long as it holds what it gets.
    pub(super) fn turn(&self) -> QueryResult<D::Turn> {
        self.shared.database.turn(false)
    }

    /// A connection in a transaction. Idle connections that the database has closed meanwhile are passed over; one that
    /// cannot be reached is tried again for a while.
    pub(super) fn begin(&self, begin: &str) -> QueryResult<Session<D::Connection>> {
        self.begin_within(&mut self.retries(), begin)
    }

    fn begin_within(&self, retries: &mut Retries, begin: &str) -> QueryResult<Session<D::Connection>> {
        while let Some(mut connection) = self.idle() {
            match AnsiTransactionManager::begin_transaction_sql(&mut *connection, begin) {
                Ok(()) => return Ok(connection),
                Err(_) if is_lost::<D>(&mut connection) => {}
                Err(error) => return Err(error),
            }
        }
        loop {
            let error = match self.connect() {
                Ok(mut connection) => {
                    match AnsiTransactionManager::begin_transaction_sql(&mut *connection, begin) {
                        Ok(()) => return Ok(connection),
                        Err(error) if is_lost::<D>(&mut connection) => error,
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => DieselError::QueryBuilderError(Box::new(error)),
            };
            if !D::IS_REMOTE || !retries.pause(&error) {
                return Err(error);
            }
        }
    }

    fn retries(&self) -> Retries {
        Retries {
            until: Some(Instant::now() + self.shared.patience.min(MOST_PATIENCE)),
            pause: SHORTEST_PAUSE,
        }
    }

    /// Runs `work` in a transaction. When another transaction gets in its way, or the connection is lost, that is rolled
    /// back and `work` is run again; not when it may have been committed after all.
    pub(super) fn write<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        mut work: impl FnMut(&mut Session<D::Connection>) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let _turn = self.turn_for(action, false)?;
        self.transaction(
            self.retries(),
            D::BEGIN_WRITE,
            action,
            |connection, in_doubt| match in_doubt {
                false => work(connection),
                true => Err(TransactionError::Database(of_unknown_outcome())),
            },
        )
    }

    /// As `write`, and also when it may have been committed after all: that is what `work` is told when it is run again.
    pub(super) fn write_surely<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let _turn = self.turn_for(action, false)?;
        self.transaction(self.retries(), D::BEGIN_WRITE, action, work)
    }

    /// As `write_surely`, before all that wait in this process, and without waiting for a database that is away: for what keeps
    /// an execution alive, or ends it, and is asked for again.
    pub(super) fn write_first<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let _turn = self.turn_for(action, true)?;
        self.transaction(Retries::ONE, D::BEGIN_WRITE, action, work)
    }

    fn turn_for<E: From<RepositoryError>>(&self, action: &'static str, hurried: bool) -> Result<D::Turn, E> {
        let turn = self.shared.database.turn(hurried);
        turn.map_err(|source| database_error(action, source))
    }

    /// As `write_surely`, for what may be lost with the machine's power until the next `write`: that a step has begun is
    /// nothing as long as nothing else of it is there. Saves the time until the disk has it. What follows makes it durable
    /// too, as the database's log is one sequence; and a process that dies loses nothing.
    pub(super) fn write_ahead<T, E: From<RepositoryError>>(
        &self,
        action: &'static str,
        work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let failed = |source: DieselError| database_error::<E>(action, source);
        let _turn = self.turn_for(action, false)?;
        let (begin, afterwards) = self.shared.database.begin_ahead();
        let (value, mut connection) = self.in_transaction(self.retries(), begin, action, work)?;
        if let Some(statement) = afterwards {
            connection.batch_execute(statement).map_err(failed)?;
        }
        self.put_back(connection);
        Ok(value)
    }

    /// Runs queries on one state of the database.
    pub(super) fn read<T>(
        &self,
        action: &'static str,
        mut work: impl FnMut(&mut Session<D::Connection>) -> Result<T, TransactionError<RepositoryError>>,
    ) -> Result<T, RepositoryError> {
        self.transaction(self.retries(), D::BEGIN_READ, action, |connection, _| {
            work(connection)
        })
    }

    /// As `read`, without waiting for a database that is away.
    pub(super) fn read_at_once<T>(
        &self,
        action: &'static str,
        mut work: impl FnMut(&mut Session<D::Connection>) -> Result<T, TransactionError<RepositoryError>>,
    ) -> Result<T, RepositoryError> {
        self.transaction(Retries::ONE, D::BEGIN_READ, action, |connection, _| {
            work(connection)
        })
    }

    fn transaction<T, E: From<RepositoryError>>(
        &self,
        retries: Retries,
        begin: &str,
        action: &'static str,
        work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let (value, connection) = self.in_transaction(retries, begin, action, work)?;
        self.put_back(connection);
        Ok(value)
    }

    /// A connection whose transaction did not end well is closed, which rolls back. So there is no ROLLBACK on whose success
    /// anything depends, and none that could hide the cause.
    fn in_transaction<T, E: From<RepositoryError>>(
        &self,
        mut retries: Retries,
        begin: &str,
        action: &'static str,
        mut work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<(T, Session<D::Connection>), E> {
        let failed = |source: DieselError| database_error::<E>(action, source);
        let (mut attempt, mut in_doubt) = (1, false);
        loop {
            let begun = self.begin_within(&mut retries, begin);
            let mut connection = match begun {
                Err(error) if in_doubt => {
                    tracing::error!(%error, "the database does not come back");
                    return Err(failed(of_unknown_outcome()));
                }
                begun => begun.map_err(failed)?,
            };
            let error = match work(&mut connection, in_doubt) {
                Ok(value) => match AnsiTransactionManager::commit_transaction(&mut *connection) {
                    Ok(()) => return Ok((value, connection)),
                    Err(source) => {
                        in_doubt |= is_lost::<D>(&mut connection);
                        source
                    }
                },
                Err(error) if error.is_passing() && attempt < ATTEMPTS => {
                    attempt += 1;
                    continue;
                }
                Err(TransactionError::Refused(error)) => return Err(error),
                Err(TransactionError::Database(source) | TransactionError::Overtaken(source)) => source,
            };
            if !is_lost::<D>(&mut connection) || !retries.pause(&error) {
                return Err(failed(error));
            }
        }
    }
}

/// Whether a connection that something has failed on is lost. It is of no use afterwards in any case.
pub(super) fn is_lost<D: Database>(connection: &mut Session<D::Connection>) -> bool {
    D::IS_REMOTE && connection.batch_execute("ROLLBACK").is_err()
}

/// How long one tries again.
struct Retries {
    /// `None`: once more, for the connection may have been idle for long.
    until: Option<Instant>,
    pause: Duration,
}

/// However long a lease is.
const MOST_PATIENCE: Duration = Duration::from_secs(60);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Retries {
    const ONE: Self = Self {
        until: None,
        pause: Duration::ZERO,
    };

    /// Waits until the next try; `false` when there is none.
    fn pause(&mut self, error: &DieselError) -> bool {
        let Some(until) = self.until else {
            self.until = Some(Instant::now());
            return true;
        };
        if Instant::now() >= until {
            return false;
        }
        if self.pause == SHORTEST_PAUSE {
            tracing::warn!(%error, "the connection to the database was lost; trying again");
        }
        thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

/// The connection was lost in the commit.
pub(super) fn of_unknown_outcome() -> DieselError {
    let reason =
        "the connection was lost while it was committed; look whether it is done before you try it again";
    DieselError::DatabaseError(DatabaseErrorKind::ClosedConnection, Box::new(reason.to_owned()))
}

fn database_error<E: From<RepositoryError>>(action: &'static str, source: DieselError) -> E {
    E::from(RepositoryError::Database {
        action,
        source: Box::new(source),
    })
}

/// Why a transaction is rolled back.
#[derive(Debug)]
pub(super) enum TransactionError<E> {
    /// A statement failed.
    Database(DieselError),
    /// The work itself says no.
    Refused(E),
    /// Another transaction has changed what this one had read: it is to be run again. The error is for when that does not
    /// help.
    Overtaken(DieselError),
}

impl<E> TransactionError<E> {
    /// Whether the same transaction may succeed when it is run again.
    fn is_passing(&self) -> bool {
        match self {
            Self::Overtaken(_) => true,
            Self::Refused(_) => false,
            Self::Database(DieselError::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) => true,
            // PostgreSQL's deadlocks have no kind of their own in diesel.
            Self::Database(DieselError::DatabaseError(DatabaseErrorKind::Unknown, about)) => {
                about.message() == "deadlock detected"
            }
            Self::Database(_) => false,
        }
    }
}

impl TransactionError<RepositoryError> {
    /// As an error of the repository.
    pub(super) fn into_error(self, action: &'static str) -> RepositoryError {
        match self {
            Self::Refused(error) => error,
            Self::Database(source) | Self::Overtaken(source) => database_error(action, source),
        }
    }
}

impl<E> From<DieselError> for TransactionError<E> {
    fn from(error: DieselError) -> Self {
        Self::Database(error)
    }
}

/// A row with the same key came first: whoever inserts it again finds it.
pub(super) fn overtaken_by_a_double<E>(error: DieselError) -> TransactionError<E> {
    match error {
        DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _) => {
            TransactionError::Overtaken(error)
        }
        error => TransactionError::Database(error),
    }
}

/// The row that was to be changed is no longer as it was read.
pub(super) fn overtaken_by_a_change<E>() -> TransactionError<E> {
    let reason = "other runtimes change the same row again and again".to_owned();
    let kind = DatabaseErrorKind::SerializationFailure;
    TransactionError::Overtaken(DieselError::DatabaseError(kind, Box::new(reason)))
}
