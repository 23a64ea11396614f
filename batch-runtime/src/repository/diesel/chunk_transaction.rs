//! The chunk transaction: what a writer writes through it commits together with the checkpoint.

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;

use super::backend::Backend;
use super::connection::on_another_database;
#[cfg(feature = "mysql")]
use super::mysql::MysqlDatabase;
use super::pool::{self, Pool};
#[cfg(feature = "postgres")]
use super::postgres::PostgresDatabase;
use super::session::Session;
#[cfg(feature = "sqlite")]
use super::sqlite::SqliteDatabase;
use crate::repository::RepositoryError;

/// The transaction of one checkpoint interval, on the database of the job repository.
///
/// A writer that takes it as its second parameter is exactly-once: its rows, the checkpoint and the counters are
/// committed together or not at all. The database's transaction begins at the first use, so that reading and
/// processing hold no lock. Dropped without a commit, everything is rolled back.
///
/// Spec: CHUNK-LOOP-12, D-79
pub struct ChunkTransaction {
    on: On,
}

enum On {
    #[cfg(feature = "sqlite")]
    Sqlite(Chunk<SqliteDatabase>),
    #[cfg(feature = "postgres")]
    Postgres(Chunk<PostgresDatabase>),
    #[cfg(feature = "mysql")]
    Mysql(Chunk<MysqlDatabase>),
}

/// Does the same with the transaction of whichever database it is.
macro_rules! on {
    ($transaction:expr, $chunk:ident => $what:expr) => {
        match &mut $transaction.on {
            #[cfg(feature = "sqlite")]
            On::Sqlite($chunk) => $what,
            #[cfg(feature = "postgres")]
            On::Postgres($chunk) => $what,
            #[cfg(feature = "mysql")]
            On::Mysql($chunk) => $what,
        }
    };
}

impl ChunkTransaction {
    /// Marks the place that a failed write is undone to.
    pub(crate) fn set_savepoint(&mut self) -> Result<(), RepositoryError> {
        on!(self, chunk => chunk.set_savepoint())
    }

    /// The write was successful.
    pub(crate) fn release_savepoint(&mut self) -> Result<(), RepositoryError> {
        on!(self, chunk => chunk.at_savepoint(RELEASE_SAVEPOINT))
    }

    /// Undoes the write, and nothing else.
    pub(crate) fn undo_to_savepoint(&mut self) -> Result<(), RepositoryError> {
        on!(self, chunk => chunk.at_savepoint(UNDO_TO_SAVEPOINT))
    }

    /// Whether the connection to the database was lost, and with it all that was not committed. To be asked only when
    /// something has failed.
    pub(crate) fn is_lost(&mut self) -> bool {
        on!(self, chunk => chunk.is_lost())
    }

    /// Rolls everything back, and is a new transaction for the same interval. Spec: CHUNK-RETRY-07, CHUNK-RETRY-08
    pub(crate) fn restart(&mut self) {
        on!(self, chunk => chunk.restart());
    }
}

/// Makes the method that gives the connection of one database, and the ways from and to its transaction.
macro_rules! transaction {
    ($(#[$about:meta])* $feature:literal, $method:ident, $variant:ident, $database:ty, $connection:ty) => {
        #[cfg(feature = $feature)]
        impl ChunkTransaction {
            $(#[$about])*
            pub fn $method(&mut self) -> QueryResult<&mut $connection> {
                match &mut self.on {
                    On::$variant(chunk) => chunk.for_writer(),
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
                }
            }
        }

        #[cfg(feature = $feature)]
        impl<'a> TryFrom<&'a mut ChunkTransaction> for &'a mut Chunk<$database> {
            type Error = RepositoryError;

            /// Fails for a transaction of another repository, which the engine never hands over.
            fn try_from(transaction: &'a mut ChunkTransaction) -> Result<Self, RepositoryError> {
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
    /// The diesel connection, inside the transaction, when the repository is on SQLite. Do not commit or roll back
    /// on it; a nested `transaction` is a savepoint, and welcome. Do not go on after an error either: on a full disk, for
    /// one, SQLite rolls the whole transaction back by itself. The step then fails, whatever the writer returns.
    ///
    /// # Errors
    /// When the transaction cannot begin (another writer held the database for a minute), or when the repository is on
    /// another database.
    "sqlite", sqlite, Sqlite, SqliteDatabase, SqliteConnection
}

transaction! {
    /// The diesel connection, inside the transaction, when the repository is on PostgreSQL. Do not commit or roll back
    /// on it; a nested `transaction` is a savepoint, and welcome. After an error outside of a nested one PostgreSQL accepts
    /// nothing more: the step fails, whatever the writer returns. The isolation level is READ COMMITTED.
    ///
    /// # Errors
    /// When the transaction cannot begin, or when the repository is on another database.
    "postgres", postgres, Postgres, PostgresDatabase, PgConnection
}

transaction! {
    /// The diesel connection, inside the transaction, when the repository is on MySQL or MariaDB. Do not commit or roll
    /// back on it, and change no tables, which would commit; a nested `transaction` is a savepoint, and welcome. After a
    /// deadlock the database has rolled the whole transaction back: the step fails, whatever the writer returns. The
    /// isolation level is READ COMMITTED.
    ///
    /// # Errors
    /// When the transaction cannot begin, or when the repository is on another database.
    "mysql", mysql, Mysql, MysqlDatabase, MysqlConnection
}

/// The same on one kind of database.
pub(super) struct Chunk<D: Backend> {
    pool: Pool<D>,
    /// The database's transaction, once it has begun.
    open: Option<Open<D>>,
    /// Whether the savepoint is set that tells a transaction that was ended behind our back.
    guarded: bool,
    /// Whether the connection was lost in the commit, or could not be had at all.
    lost: bool,
}

/// Dropped in this order: the connection is closed, which rolls back, before another thread writes.
struct Open<D: Backend> {
    connection: Session<D::Connection>,
    _lock: D::WriteLock,
}

const SET_SAVEPOINT: &str = "SAVEPOINT batch_write";
const RELEASE_SAVEPOINT: &str = "RELEASE SAVEPOINT batch_write";
const UNDO_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT batch_write; RELEASE SAVEPOINT batch_write";

/// Set by `Backend::BEGIN_CHUNK`.
const CLOSE_GUARD: &str = "RELEASE SAVEPOINT batch_chunk";

impl<D: Backend> Chunk<D> {
    pub(super) fn new(pool: Pool<D>) -> Self {
        Self {
            pool,
            open: None,
            guarded: false,
            lost: false,
        }
    }

    /// The connection for the writer.
    fn for_writer(&mut self) -> QueryResult<&mut D::Connection> {
        if self.open.is_none() {
            self.begun(D::BEGIN_CHUNK)?;
            self.guarded = true;
        }
        self.begun(D::BEGIN_CHUNK).map(|session| &mut **session)
    }

    /// The connection, inside the transaction.
    fn begun(&mut self, begin: &str) -> QueryResult<&mut Session<D::Connection>> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let begun = self.begin(begin);
                self.lost = D::IS_REMOTE && begun.is_err();
                begun?
            }
        };
        Ok(&mut self.open.insert(open).connection)
    }

    fn begin(&self, begin: &str) -> QueryResult<Open<D>> {
        let lock = self.pool.write_lock()?;
        // Only now: the connection that was given back last has written last, and knows the newest pages.
        let connection = self.pool.begin(begin)?;
        Ok(Open {
            connection,
            _lock: lock,
        })
    }

    /// The connection for what the repository writes itself, after the writer. Whether the writer's transaction is still
    /// the one that was begun shows at the savepoint that it began with: statements after its end would be committed one
    /// by one.
    pub(super) fn after_writer(&mut self) -> Result<&mut Session<D::Connection>, RepositoryError> {
        let guarded = std::mem::take(&mut self.guarded);
        let connection = self
            .begun(D::BEGIN_WRITE)
            .map_err(|source| RepositoryError::Database {
                action: "begin the transaction of the checkpoint",
                source: Box::new(source),
            })?;
        if guarded {
            connection
                .batch_execute(CLOSE_GUARD)
                .map_err(|_| RepositoryError::TransactionEnded)?;
        }
        Ok(connection)
    }

    fn set_savepoint(&mut self) -> Result<(), RepositoryError> {
        let begun = self.for_writer().map(|_| ());
        begun.map_err(|source| RepositoryError::Database {
            action: "begin the transaction of the chunk",
            source: Box::new(source),
        })?;
        self.at_savepoint(SET_SAVEPOINT)
    }

    /// On an error the database may have ended the transaction by itself.
    fn at_savepoint(&mut self, statement: &str) -> Result<(), RepositoryError> {
        let done = self
            .begun(D::BEGIN_CHUNK)
            .and_then(|connection| connection.batch_execute(statement));
        done.map_err(|_| RepositoryError::TransactionEnded)
    }

    fn restart(&mut self) {
        // Closing a connection rolls back, whatever state it is in; nothing of ours has to succeed for that.
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

    /// Commits, and gives the connection back for the next chunk.
    pub(super) fn commit(&mut self) -> Result<(), RepositoryError> {
        self.commit_as("commit the chunk")
    }

    /// Whether a commit that failed may have been carried out after all.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.lost
    }

    fn commit_as(&mut self, action: &'static str) -> Result<(), RepositoryError> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let committed = AnsiTransactionManager::commit_transaction(&mut *open.connection);
        if let Err(source) = committed {
            self.lost = pool::is_lost::<D>(&mut open.connection);
            return Err(RepositoryError::Database {
                action,
                source: Box::new(source),
            });
        }
        self.pool.put_back(open.connection);
        Ok(())
    }
}

#[cfg(batch_failpoints)]
impl<D: Backend> Chunk<D> {
    /// The fault `split-commit`.
    pub(super) fn commit_data_only(&mut self) -> Result<(), RepositoryError> {
        self.after_writer()?;
        self.commit_as("commit the data")
    }
}
