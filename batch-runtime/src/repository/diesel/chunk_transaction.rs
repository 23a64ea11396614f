//! The chunk transaction, which commits the writer's data together with the checkpoint.

use std::any::{Any, TypeId};

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;

use super::backend::Backend;
use super::connection::{DatabaseConnection, no_database, on_another_database};
#[cfg(feature = "mysql")]
use super::mysql::MysqlDatabase;
use super::pool::{self, Pool};
#[cfg(feature = "postgres")]
use super::postgres::PostgresDatabase;
use super::session::Session;
#[cfg(feature = "sqlite")]
use super::sqlite::SqliteDatabase;
use super::transaction_error::database_error;
use crate::error::BatchError;
use crate::marker::{AnyDestination, DestinationReturn};
use crate::repository::{RepositoryError, Result};

/// The transaction of one checkpoint interval, on the database of the job repository.
///
/// A writer that takes it as its second parameter writes exactly once: its rows, the checkpoint and the counters are
/// committed together or not at all. The database transaction starts at the first use, so that reading and processing
/// hold no lock. Dropping it without a commit rolls everything back.
// Spec: CHUNK-LOOP-12, D-79
pub struct ChunkTransaction {
    on: On,
    /// The destination of the step's writer, if it has one.
    destination: Option<AnyDestination>,
    /// Whether another process has taken over the marker in the destination.
    superseded: bool,
    /// Whether a marker shows what the destination has committed.
    shows_commit: bool,
    /// Whether the destination has committed the items of the interval before.
    destination_has_items: bool,
}

enum On {
    #[cfg(feature = "sqlite")]
    Sqlite(Chunk<SqliteDatabase>),
    #[cfg(feature = "postgres")]
    Postgres(Chunk<PostgresDatabase>),
    #[cfg(feature = "mysql")]
    Mysql(Chunk<MysqlDatabase>),
    /// The repository is in memory.
    None,
}

/// Calls the transaction of the current database; the second expression is the result without one.
macro_rules! on {
    ($transaction:expr, $chunk:ident => $what:expr, $otherwise:expr) => {
        match &mut $transaction.on {
            #[cfg(feature = "sqlite")]
            On::Sqlite($chunk) => $what,
            #[cfg(feature = "postgres")]
            On::Postgres($chunk) => $what,
            #[cfg(feature = "mysql")]
            On::Mysql($chunk) => $what,
            On::None => $otherwise,
        }
    };
}

impl ChunkTransaction {
    /// Creates the transaction of a repository in memory: it changes nothing, and has no connection.
    pub(crate) fn without_database() -> Self {
        Self {
            on: On::None,
            destination: None,
            superseded: false,
            shows_commit: false,
            destination_has_items: false,
        }
    }

    /// Returns whether there is a database.
    pub(crate) fn has_database(&self) -> bool {
        !matches!(self.on, On::None)
    }

    /// Lets the writer write to its destination, too, until it is [detached](Self::detach). Without a marker that shows what is committed,
    /// a step cannot resume after a lost connection.
    pub(crate) fn attach(
        &mut self,
        destination: Option<AnyDestination>,
        shows_commit: bool,
        has_items: bool,
    ) {
        self.destination = destination;
        self.shows_commit = shows_commit;
        self.destination_has_items = has_items;
    }

    /// Rolls back what the destination has not committed, and returns it.
    pub(crate) fn detach(&mut self) -> Option<AnyDestination> {
        let mut destination = self.destination.take()?;
        destination.get().roll_back();
        Some(destination)
    }

    /// Returns the destination.
    pub(crate) fn destination_mut(&mut self) -> Option<&mut AnyDestination> {
        self.destination.as_mut()
    }

    /// Notes that the marker in the destination has another owner.
    pub(crate) fn supersede(&mut self) {
        self.superseded = true;
    }

    /// Returns whether a writer has used the connection to the repository.
    pub(crate) fn is_used(&mut self) -> bool {
        on!(self, chunk => chunk.open.is_some(), false)
    }

    /// Sets the savepoint for the next write.
    pub(crate) fn set_savepoint(&mut self) -> std::result::Result<(), BatchError> {
        match &mut self.destination {
            Some(destination) => destination.get().set_savepoint(),
            None => Ok(on!(self, chunk => chunk.set_savepoint(), Ok(()))?),
        }
    }

    /// Releases the savepoint after a successful write.
    pub(crate) fn release_savepoint(&mut self) -> std::result::Result<(), BatchError> {
        match &mut self.destination {
            Some(destination) => destination.get().release_savepoint(),
            None => Ok(on!(self, chunk => chunk.at_savepoint(RELEASE_SAVEPOINT), Ok(()))?),
        }
    }

    /// Rolls back to the savepoint.
    pub(crate) fn undo_to_savepoint(&mut self) -> std::result::Result<(), BatchError> {
        match &mut self.destination {
            Some(destination) => destination.get().undo_to_savepoint(),
            None => Ok(on!(self, chunk => chunk.at_savepoint(UNDO_TO_SAVEPOINT), Ok(()))?),
        }
    }

    /// Returns whether the connection to the database or to the destination was lost, and with it everything not committed. Only
    /// meaningful after an error.
    pub(crate) fn is_lost(&mut self) -> bool {
        if self.superseded {
            return true;
        }
        let destination = self.destination.as_mut().filter(|_| self.shows_commit);
        destination.is_some_and(|destination| destination.get().is_lost())
            || on!(self, chunk => chunk.is_lost(), false)
    }

    /// Allows a power failure to lose the commit, if that lets the database commit faster. A later commit survives only if this one does.
    // Spec: D-103
    pub(crate) fn relax(&mut self) {
        on!(self, chunk => chunk.relaxed = true, ());
    }

    /// Rolls everything back, and starts a new transaction for the same interval.
    // Spec: CHUNK-RETRY-07, CHUNK-RETRY-08
    pub(crate) fn restart(&mut self) {
        if let Some(destination) = &mut self.destination {
            destination.get().roll_back();
        }
        on!(self, chunk => chunk.restart(), ());
    }
}

/// Of a writer that is made of others, which passes the chunk transaction on.
#[diagnostic::do_not_recommend]
impl<E: Into<BatchError>> DestinationReturn<ChunkTransaction>
    for std::result::Result<Option<AnyDestination>, E>
{
    fn into_destination(self) -> std::result::Result<Option<AnyDestination>, BatchError> {
        self.map_err(Into::into)
    }
}

impl ChunkTransaction {
    /// Returns the transaction of the step's [`Destination`](crate::destination::Destination), for a writer inside a writer.
    ///
    /// # Errors
    /// When it cannot begin, the step has no destination with such a transaction, or [the destination has the items
    /// already](Self::destination_has_items).
    // Spec: MARK-03
    pub fn destination<T: 'static>(&mut self) -> std::result::Result<&mut T, BatchError> {
        let none = || {
            let transaction = std::any::type_name::<T>();
            BatchError::msg(format!(
                "the step has no destination whose transaction is a `{transaction}`"
            ))
        };
        let destination = self.destination.as_mut().ok_or_else(none)?;
        if self.destination_has_items {
            return Err(BatchError::msg(
                "the destination has these items already; a writer that also writes to the repository asks \
                 `ChunkTransaction::destination_has_items` before it writes to the destination",
            ));
        }
        destination.get().transaction()?.downcast_mut().ok_or_else(none)
    }

    /// Returns whether the destination has committed the items of this interval before, and the process died before the repository did. A writer
    /// that writes to both databases writes to the repository alone then, and returns the same checkpoint as if it had written to both. The items are
    /// the same if reader and processor return the same as before.
    // Spec: MARK-15
    pub fn destination_has_items(&self) -> bool {
        self.destination_has_items
    }

    /// Returns whether `T`, which `#[write_items]` takes as its second parameter, is the transaction of a destination. Called by
    /// generated code.
    #[doc(hidden)]
    pub fn is_other_than<T: 'static>() -> bool {
        TypeId::of::<T>() != TypeId::of::<Self>()
    }

    /// Returns what `#[write_items]` takes as its second parameter: this transaction, or the destination's. Called by generated
    /// code.
    #[doc(hidden)]
    pub fn part<T: 'static>(&mut self) -> std::result::Result<&mut T, BatchError> {
        if (self as &dyn Any).is::<T>() {
            return (self as &mut dyn Any)
                .downcast_mut()
                .ok_or_else(|| RepositoryError::Fault.into());
        }
        self.destination()
    }

    /// Returns the diesel connection to the database of the repository, inside the transaction. The same rules apply as
    /// for `sqlite`, `postgres` and `mysql`.
    ///
    /// # Errors
    /// When the transaction cannot start, or the repository is in memory.
    pub fn any(&mut self) -> QueryResult<DatabaseConnection<'_>> {
        match &mut self.on {
            #[cfg(feature = "sqlite")]
            On::Sqlite(chunk) => chunk.for_writer().map(DatabaseConnection::Sqlite),
            #[cfg(feature = "postgres")]
            On::Postgres(chunk) => chunk.for_writer().map(DatabaseConnection::Postgres),
            #[cfg(feature = "mysql")]
            On::Mysql(chunk) => chunk.for_writer().map(DatabaseConnection::Mysql),
            On::None => Err(no_database()),
        }
    }
}

/// Implements the accessor for the connection of one database, and the conversions from and to its transaction.
macro_rules! transaction {
    ($(#[$about:meta])* $feature:literal, $method:ident, $variant:ident, $database:ty, $connection:ty) => {
        #[cfg(feature = $feature)]
        impl ChunkTransaction {
            $(#[$about])*
            pub fn $method(&mut self) -> QueryResult<&mut $connection> {
                match &mut self.on {
                    On::$variant(chunk) => chunk.for_writer(),
                    On::None => Err(no_database()),
                    #[allow(unreachable_patterns, reason = "there may be one database only")]
                    _ => Err(on_another_database($feature)),
                }
            }
        }

        #[cfg(feature = $feature)]
        impl From<Chunk<$database>> for ChunkTransaction {
            fn from(chunk: Chunk<$database>) -> Self {
                Self {
                    on: On::$variant(chunk),
                    destination: None,
                    superseded: false,
                    shows_commit: false,
                    destination_has_items: false,
                }
            }
        }

        #[cfg(feature = $feature)]
        impl<'a> TryFrom<&'a mut ChunkTransaction> for &'a mut Chunk<$database> {
            type Error = RepositoryError;

            /// Fails for a transaction of another repository, which the engine never passes.
            fn try_from(transaction: &'a mut ChunkTransaction) -> Result<Self> {
                match &mut transaction.on {
                    On::$variant(chunk) => Ok(chunk),
                    #[allow(unreachable_patterns, reason = "there may be one database only")]
                    _ => Err(RepositoryError::Fault),
                }
            }
        }
    };
}

transaction! {
    /// Returns the diesel connection, inside the transaction, if the repository is on SQLite. Nested transactions are
    /// savepoints; do not commit or roll back the transaction itself. Do not continue after an error: SQLite may have
    /// rolled back the whole transaction, for example on a full disk, and the step then fails regardless of the
    /// writer's result.
    ///
    /// # Errors
    /// When the transaction cannot start (another writer held the database for a minute), or when the repository is
    /// on another database.
    "sqlite", sqlite, Sqlite, SqliteDatabase, SqliteConnection
}

transaction! {
    /// Returns the diesel connection, inside the transaction, if the repository is on PostgreSQL. Nested transactions
    /// are savepoints; do not commit or roll back the transaction itself, and do not reset its settings (`RESET ALL`). After an
    /// error outside of a nested transaction PostgreSQL rejects all further statements, and the step fails regardless of the writer's result.
    /// The isolation level is READ COMMITTED.
    ///
    /// # Errors
    /// When the transaction cannot start, or when the repository is on another database.
    "postgres", postgres, Postgres, PostgresDatabase, PgConnection
}

transaction! {
    /// Returns the diesel connection, inside the transaction, if the repository is on MySQL or MariaDB. Nested
    /// transactions are savepoints; do not commit or roll back the transaction itself, and do not change tables,
    /// which would commit it. After a deadlock the database has rolled back the whole transaction, and the step fails
    /// regardless of the writer's result. The isolation level is READ COMMITTED.
    ///
    /// # Errors
    /// When the transaction cannot start, or when the repository is on another database.
    "mysql", mysql, Mysql, MysqlDatabase, MysqlConnection
}

/// The chunk transaction on one kind of database.
pub(super) struct Chunk<D: Backend> {
    pool: Pool<D>,
    /// The database transaction, once it has started.
    open: Option<Open<D>>,
    /// Whether the guard has to be closed that reveals whether the writer's transaction has ended.
    guarded: bool,
    /// Whether the connection was lost in the commit, or could not be opened.
    lost: bool,
    /// Whether the commit need not survive a loss of power.
    relaxed: bool,
}

/// Fields are dropped in order: closing the connection rolls back, before another thread may write.
struct Open<D: Backend> {
    connection: Session<D::Connection>,
    lock: D::WriteLock,
}

const SET_SAVEPOINT: &str = "SAVEPOINT batch_write";
const RELEASE_SAVEPOINT: &str = "RELEASE SAVEPOINT batch_write";
const UNDO_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT batch_write; RELEASE SAVEPOINT batch_write";

impl<D: Backend> Chunk<D> {
    pub(super) fn new(pool: Pool<D>) -> Self {
        Self {
            pool,
            open: None,
            guarded: false,
            lost: false,
            relaxed: false,
        }
    }

    /// Returns the connection for the writer.
    fn for_writer(&mut self) -> QueryResult<&mut D::Connection> {
        if self.open.is_none() {
            self.transaction(D::BEGIN_CHUNK)?;
            self.guarded = D::CLOSE_GUARD.is_some();
        }
        self.transaction(D::BEGIN_CHUNK).map(|session| &mut **session)
    }

    /// Returns the connection, inside the transaction.
    fn transaction(&mut self, begin: &str) -> QueryResult<&mut Session<D::Connection>> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let begun = self.begin(begin);
                // As after a lost connection, the step reopens at the state of the database once the server is back.
                self.lost = D::IS_REMOTE && begun.is_err();
                begun?
            }
        };
        Ok(&mut self.open.insert(open).connection)
    }

    fn begin(&self, begin: &str) -> QueryResult<Open<D>> {
        let lock = self.pool.write_lock()?;
        // Opened late: the pooled connection that was returned last has the newest pages cached.
        let connection = self.pool.begin(begin)?;
        Ok(Open { connection, lock })
    }

    /// Returns the connection for the repository's own statements, after the writer. Checks that the writer's transaction
    /// has not ended: further statements would be committed one by one. On PostgreSQL `update_chunk_rows` checks it, so it must be
    /// the next statement.
    pub(super) fn after_writer(&mut self) -> Result<&mut Session<D::Connection>> {
        let close_guard = D::CLOSE_GUARD.filter(|_| std::mem::take(&mut self.guarded));
        // A chunk without a writer needs no guard, except where the statement of `update_chunk_rows` looks for it.
        let begin = match D::CLOSE_GUARD {
            Some(_) => D::BEGIN_WRITE,
            None => D::BEGIN_CHUNK,
        };
        let connection = self
            .transaction(begin)
            .map_err(|source| database_error("begin the transaction of the checkpoint", source))?;
        if let Some(close_guard) = close_guard {
            connection
                .batch_execute(close_guard)
                // The savepoint is gone only if the transaction that has set it was ended.
                .map_err(|_| RepositoryError::TransactionEnded)?;
        }
        Ok(connection)
    }

    fn set_savepoint(&mut self) -> Result<()> {
        self.for_writer().map_err(|source| -> RepositoryError {
            database_error("begin the transaction of the chunk", source)
        })?;
        self.at_savepoint(SET_SAVEPOINT)
    }

    /// After an error the database may have ended the transaction.
    fn at_savepoint(&mut self, statement: &str) -> Result<()> {
        let done = self
            .transaction(D::BEGIN_CHUNK)
            .and_then(|connection| connection.batch_execute(statement));
        done.map_err(|_| RepositoryError::TransactionEnded)
    }

    fn restart(&mut self) {
        // Closing a connection rolls back in every state, and cannot fail.
        self.open = None;
        self.guarded = false;
        self.lost = false;
    }

    fn is_lost(&mut self) -> bool {
        self.lost
            || self
                .open
                .as_mut()
                .is_some_and(|open| pool::is_lost::<D>(&mut open.connection))
    }

    /// Commits, and keeps the connection for the next chunk.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.commit_as("commit the chunk")
    }

    /// Returns whether a failed commit may have been carried out.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.lost
    }

    fn commit_as(&mut self, action: &'static str) -> Result<()> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let committed = AnsiTransactionManager::commit_transaction(&mut *open.connection);
        if let Err(source) = committed {
            // Only a lost connection leaves the outcome open: a COMMIT that the database rejects was not carried out.
            self.lost = pool::is_lost::<D>(&mut open.connection);
            return Err(database_error(action, source));
        }
        let Open { connection, lock } = open;
        drop(lock);
        self.pool.put_back(connection);
        match self.relaxed {
            true => Ok(()),
            false => self.pool.make_durable(action),
        }
    }
}

#[cfg(debug_assertions)]
impl<D: Backend> Chunk<D> {
    /// The fault `split-commit`.
    pub(super) fn commit_data_only(&mut self) -> Result<()> {
        self.after_writer()?;
        self.commit_as("commit the data")
    }
}
