//! Transactions on a small pool of connections: start, commit, retry and rollback.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

use super::backend::Backend;
use super::connection::RepositoryConnection;
use super::session::{Session, SessionSettings};
use super::transaction_error::{TransactionError, database_error};
use super::url::shown;
use crate::repository::database_kind::MEMORY_URL;
use crate::repository::{RepositoryError, Result};

/// The most times that a transaction is run because of conflicts. In each conflict one transaction succeeds.
const MAX_ATTEMPTS: u32 = 100;

/// How a transaction is run. Most say `Tx::read` or `Tx::write`.
#[derive(Clone, Copy)]
pub(super) struct Tx {
    /// What it does, for messages.
    action: &'static str,
    kind: Kind,
    /// Whether to wait for an unreachable database for as long as an execution does.
    retry: bool,
    /// Whether to wait until the commit survives a loss of power.
    durable: bool,
    /// Whether to go ahead of all others that wait to write in this process.
    priority: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
    Statement,
}

impl Tx {
    /// Queries on one state of the database.
    pub(super) fn read(action: &'static str) -> Self {
        Self {
            kind: Kind::Read,
            durable: false,
            ..Self::write(action)
        }
    }

    /// A durable write.
    pub(super) fn write(action: &'static str) -> Self {
        Self {
            action,
            kind: Kind::Write,
            retry: true,
            durable: true,
            priority: false,
        }
    }

    /// With one more try only, for calls that their caller repeats.
    pub(super) fn once(self) -> Self {
        Self { retry: false, ..self }
    }

    /// Without waiting for the disk: a loss of power may undo it until the next durable commit, because the database's log is one sequence;
    /// a crash of the process loses nothing. For the start of a step, which means nothing as long as nothing else of the step is recorded.
    pub(super) fn relaxed(self) -> Self {
        Self {
            durable: false,
            ..self
        }
    }

    /// Ahead of others, for calls that keep an execution alive or stop it.
    pub(super) fn with_priority(self) -> Self {
        Self {
            priority: true,
            ..self
        }
    }

    /// A durable write outside of a transaction, so that each statement commits by itself: only one of them may write. If the connection is
    /// lost, that one is in doubt. On a server it takes one round trip instead of three.
    pub(super) fn statement(action: &'static str) -> Self {
        Self {
            kind: Kind::Statement,
            ..Self::write(action)
        }
    }
}

/// Fails if an earlier attempt may have been committed: for work that cannot find out.
pub(super) fn ensure_known<E>(in_doubt: bool) -> Result<(), TransactionError<E>> {
    match in_doubt {
        true => Err(TransactionError::Database(unknown_outcome())),
        false => Ok(()),
    }
}

/// Idle connections. One that failed is not returned to the pool: closing it rolls its transaction back.
pub(super) struct Pool<D: Backend> {
    shared: Arc<Shared<D>>,
}

impl<D: Backend> Clone for Pool<D> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

struct Shared<D: Backend> {
    database: D,
    settings: SessionSettings,
    /// How long to try to reach the database again after a connection was lost.
    patience: Duration,
    /// True after the database was unreachable for `patience`, until it is reached again: the next transactions, which record
    /// the failure, do not wait as well.
    unreachable: AtomicBool,
    idle: Mutex<Vec<Session<D::Connection>>>,
    // A database in memory ends with its last connection; this one is never lent.
    _anchor: Mutex<Option<D::Connection>>,
}

/// Opens connections for artifacts.
trait Connect: Send + Sync {
    fn connect(&self) -> Result<RepositoryConnection>;

    /// Returns the URL of the database, with its password.
    fn url(&self) -> &str;
}

impl<D: Backend> Connect for Shared<D> {
    fn connect(&self) -> Result<RepositoryConnection> {
        self.database.connect().map(Into::into)
    }

    fn url(&self) -> &str {
        self.database.url()
    }
}

/// The database of the repository, for artifacts that open their own connections; `None` of a repository in memory.
#[derive(Clone)]
pub(crate) struct Connector {
    shared: Option<Arc<dyn Connect>>,
}

impl Connector {
    /// Creates the connector of a repository in memory.
    pub(crate) fn without_database() -> Self {
        Self { shared: None }
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> Result<RepositoryConnection> {
        let missing = "database that artifacts can connect to";
        let shared = self.shared.as_ref();
        shared.map_or(Err(RepositoryError::InMemory { missing }), |shared| {
            shared.connect()
        })
    }

    /// Returns the URL with a masked password.
    pub(crate) fn url(&self) -> String {
        shown(self.shared.as_ref().map_or(MEMORY_URL, |shared| shared.url()))
    }
}

impl<D: Backend> Pool<D> {
    pub(super) fn new(database: D, settings: SessionSettings, patience: Duration) -> Result<Self> {
        let anchor = if database.is_in_memory() {
            Some(database.connect()?)
        } else {
            None
        };
        let shared = Shared {
            database,
            settings,
            patience,
            unreachable: AtomicBool::new(false),
            idle: Mutex::default(),
            _anchor: Mutex::new(anchor),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    pub(super) fn database(&self) -> &D {
        &self.shared.database
    }

    pub(super) fn connector(&self) -> Connector {
        let shared: Arc<Shared<D>> = Arc::clone(&self.shared);
        Connector { shared: Some(shared) }
    }

    /// Takes an idle connection if there are more than `kept`.
    fn idle(&self, kept: usize) -> Option<Session<D::Connection>> {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        (idle.len() > kept).then(|| idle.pop()).flatten()
    }

    /// Closes the idle connections. Returns whether there were any.
    fn close_idle(&self) -> bool {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::take(&mut *idle).is_empty()
    }

    #[cfg(test)]
    pub(super) fn take(&self) -> Result<Session<D::Connection>> {
        self.idle(0).map_or_else(|| self.connect(), Ok)
    }

    fn connect(&self) -> Result<Session<D::Connection>> {
        let connection = self.shared.database.connect_for_pool()?;
        Ok(Session::new(connection, self.shared.settings.clone()))
    }

    pub(super) fn put_back(&self, connection: Session<D::Connection>) {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
    }

    /// Waits for the right to write.
    pub(super) fn write_lock(&self) -> QueryResult<D::WriteLock> {
        self.shared.database.write_lock(false)
    }

    /// Begins the transaction of a chunk. Skips idle connections that the database has closed meanwhile, and keeps trying to reach a
    /// database for a while. Leaves the last idle connection to a server for other transactions: however many chunks are open, ends and
    /// stops are recorded, and leases renewed.
    pub(super) fn begin(&self, begin: &str) -> QueryResult<Session<D::Connection>> {
        self.begin_within(&mut self.retries(), Some(begin), usize::from(D::IS_REMOTE))
    }

    /// Begins a transaction, and leaves `kept` idle connections; without `begin`, returns a connection outside of a transaction, which may be
    /// lost already.
    fn begin_within(
        &self,
        retries: &mut Retries,
        begin: Option<&str>,
        kept: usize,
    ) -> QueryResult<Session<D::Connection>> {
        let begin_on = |connection: &mut Session<D::Connection>| match begin {
            Some(begin) => AnsiTransactionManager::begin_transaction_sql(&mut **connection, begin),
            None => Ok(()),
        };
        loop {
            // Others put connections back while this one waits for the server.
            while let Some(mut connection) = self.idle(kept) {
                match begin_on(&mut connection) {
                    Ok(()) if begin.is_none() => return Ok(connection),
                    Ok(()) => return Ok(self.reached(connection)),
                    // Nothing was sent before BEGIN, so another connection can take its place.
                    Err(_) if is_lost::<D>(&mut connection) => {}
                    Err(error) => return Err(error),
                }
            }
            let error = match self.connect() {
                Ok(mut connection) => match begin_on(&mut connection) {
                    Ok(()) => return Ok(self.reached(connection)),
                    Err(error) if is_lost::<D>(&mut connection) => error,
                    Err(error) => return Err(error),
                },
                Err(error) => DieselError::QueryBuilderError(Box::new(error)),
            };
            if !D::IS_REMOTE || !retries.pause(&error) {
                // A poll that did not wait does not show how long the database is unreachable.
                if retries.is_patient {
                    self.shared.unreachable.store(true, Ordering::Relaxed);
                }
                return Err(error);
            }
        }
    }

    fn reached(&self, connection: Session<D::Connection>) -> Session<D::Connection> {
        self.shared.unreachable.store(false, Ordering::Relaxed);
        connection
    }

    fn retries(&self) -> Retries {
        match self.shared.unreachable.load(Ordering::Relaxed) {
            true => Retries::ONE,
            false => Retries::within(self.shared.patience),
        }
    }

    /// Runs `work` until it is committed or fails: again after a conflict with another transaction or a lost connection, with `in_doubt` set
    /// if an earlier attempt may have been committed.
    pub(super) fn run<T, E: From<RepositoryError>>(
        &self,
        tx: Tx,
        work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        let lock = match tx.kind {
            Kind::Read => None,
            Kind::Write | Kind::Statement => Some(self.shared.database.write_lock(tx.priority)),
        };
        let lock = lock
            .transpose()
            .map_err(|source| database_error(tx.action, source))?;
        let (value, connection) = self.attempts(tx, work)?;
        self.put_back(connection);
        drop(lock);
        // After the lock is released: other threads commit meanwhile, and share one wait for the disk.
        if tx.durable {
            self.make_durable(tx.action)?;
        }
        Ok(value)
    }

    /// Waits until what was committed survives a loss of power.
    pub(super) fn make_durable<E: From<RepositoryError>>(&self, action: &'static str) -> Result<(), E> {
        let failed =
            |error: std::io::Error| database_error(action, DieselError::QueryBuilderError(Box::new(error)));
        self.shared.database.make_durable().map_err(failed)
    }

    /// A connection whose transaction failed is closed, which rolls back: nothing depends on a ROLLBACK that could fail and hide the cause.
    fn attempts<T, E: From<RepositoryError>>(
        &self,
        tx: Tx,
        mut work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<(T, Session<D::Connection>), E> {
        let failed = |source: DieselError| database_error::<E>(tx.action, source);
        let begin = match tx.kind {
            Kind::Read => Some(D::BEGIN_READ),
            Kind::Write => Some(D::BEGIN_WRITE),
            Kind::Statement => None,
        };
        let mut retries = match tx.retry {
            true => self.retries(),
            false => Retries::ONE,
        };
        let (mut attempt, mut in_doubt) = (1, false);
        loop {
            let mut connection = match self.begin_within(&mut retries, begin, 0) {
                // The caller must learn that the outcome is unknown, and not only that the database is away.
                Err(error) if in_doubt => {
                    tracing::error!(%error, "the database stays unreachable");
                    return Err(failed(unknown_outcome()));
                }
                result => result.map_err(failed)?,
            };
            let error = match work(&mut connection, in_doubt) {
                Ok(value) if begin.is_none() => return Ok((value, self.reached(connection))),
                Ok(value) => match AnsiTransactionManager::commit_transaction(&mut *connection) {
                    Ok(()) => return Ok((value, connection)),
                    Err(source) => {
                        // A COMMIT whose connection is lost may have been carried out; one that the server has
                        // rejected was not.
                        in_doubt |= is_lost::<D>(&mut connection);
                        source
                    }
                },
                // The connection is dropped with its transaction, so the next attempt reads what the other one
                // has committed.
                Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    continue;
                }
                Err(TransactionError::Rejected(error)) => return Err(error),
                Err(TransactionError::Database(source) | TransactionError::Conflict(source)) => source,
            };
            if !is_lost::<D>(&mut connection) {
                return Err(failed(match D::lock_hint(&mut connection, &error) {
                    Some(hint) => with_hint(&error, &hint),
                    None => error,
                }));
            }
            // Without BEGIN, the statement is the first to notice it, and may have been carried out. The other idle connections are as old.
            if begin.is_none() {
                in_doubt = true;
                if self.close_idle() {
                    continue;
                }
            }
            if !retries.pause(&error) {
                return Err(failed(error));
            }
        }
    }
}

/// Returns whether a connection is lost after a statement has failed on it. The connection cannot be used afterwards.
pub(super) fn is_lost<D: Backend>(connection: &mut Session<D::Connection>) -> bool {
    D::IS_REMOTE && connection.batch_execute("ROLLBACK").is_err()
}

/// How long to try again.
pub(super) struct Retries {
    /// `None` is one more try, because the connection may have been idle for long.
    until: Option<Instant>,
    pause: Duration,
    /// True if it waits as long as an execution waits for its database.
    is_patient: bool,
}

/// The longest time, however long a lease is.
const MAX_PATIENCE: Duration = Duration::from_secs(60);
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl Retries {
    const ONE: Self = Self {
        until: None,
        pause: Duration::ZERO,
        is_patient: false,
    };

    pub(super) fn within(patience: Duration) -> Self {
        Self {
            until: Some(Instant::now() + patience.min(MAX_PATIENCE)),
            pause: MIN_PAUSE,
            is_patient: true,
        }
    }

    /// Waits until the next try. Returns `false` if there is none.
    pub(super) fn pause(&mut self, error: &impl Display) -> bool {
        let Some(until) = self.until else {
            self.until = Some(Instant::now());
            return true;
        };
        if Instant::now() >= until {
            return false;
        }
        if self.pause == MIN_PAUSE {
            tracing::warn!(%error, "cannot reach the database; trying again");
        }
        thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        true
    }
}

/// Returns the error for a connection that was lost during a commit.
fn unknown_outcome() -> DieselError {
    let reason =
        "the connection was lost during the commit; check whether it was carried out before trying again";
    DieselError::DatabaseError(DatabaseErrorKind::ClosedConnection, Box::new(reason.to_owned()))
}

/// Adds a hint to an error of the database.
fn with_hint(error: &DieselError, hint: &str) -> DieselError {
    DieselError::QueryBuilderError(format!("{error}; {hint}").into())
}
