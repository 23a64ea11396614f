//! The chunk transaction: what a writer writes through it commits together with the checkpoint.

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::Error as DieselError;

use super::connection::{Pool, RepositoryConnection};
use super::turn::Turn;
use crate::repository::RepositoryError;

/// The transaction of one checkpoint interval, on the database of the job repository.
///
/// A writer that takes it as its second parameter is exactly-once: its rows, the checkpoint and the counters are
/// committed together or not at all. The database's transaction begins at the first use, so that reading and
/// processing hold no lock. Dropped without a commit, everything is rolled back.
///
/// Spec: CHUNK-LOOP-12, D-79
pub struct ChunkTransaction {
    pool: Pool,
    /// The database's transaction, once it has begun.
    open: Option<Open>,
    /// Whether the savepoint is set that tells a transaction that was ended behind our back.
    guarded: bool,
}

/// Dropped in this order: the connection is closed, which rolls back, before another thread writes.
struct Open {
    connection: RepositoryConnection,
    _turn: Turn,
}

const SET_SAVEPOINT: &str = "SAVEPOINT batch_write";
const RELEASE_SAVEPOINT: &str = "RELEASE batch_write";
const UNDO_TO_SAVEPOINT: &str = "ROLLBACK TO batch_write; RELEASE batch_write";

const OPEN_GUARD: &str = "SAVEPOINT batch_chunk";
const CLOSE_GUARD: &str = "RELEASE batch_chunk";

impl ChunkTransaction {
    pub(super) fn new(pool: Pool) -> Self {
        Self {
            pool,
            open: None,
            guarded: false,
        }
    }

    /// The diesel connection, inside the transaction, when the repository is on SQLite. Do not commit or roll back
    /// on it; a nested `transaction` is a savepoint, and welcome. Do not go on after an error either: on a full disk, for
    /// one, SQLite rolls the whole transaction back by itself. The step then fails, whatever the writer returns.
    ///
    /// # Errors
    /// When the transaction cannot begin (another writer held the database for a minute), or when the repository is on
    /// another database.
    pub fn sqlite(&mut self) -> QueryResult<&mut SqliteConnection> {
        if self.open.is_none() {
            self.begun()?.batch_execute(OPEN_GUARD)?;
            self.guarded = true;
        }
        self.begun()
    }

    /// The connection, inside the transaction.
    fn begun(&mut self) -> QueryResult<&mut SqliteConnection> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        self.open.insert(open).connection.sqlite()
    }

    fn begin(&self) -> QueryResult<Open> {
        let turn = self.pool.turn()?;
        // Only now: the connection that was given back last has written last, and knows the newest pages.
        let connection = self.pool.take();
        let mut connection = connection.map_err(|error| DieselError::QueryBuilderError(Box::new(error)))?;
        AnsiTransactionManager::begin_transaction_sql(connection.sqlite()?, "BEGIN IMMEDIATE")?;
        Ok(Open {
            connection,
            _turn: turn,
        })
    }

    /// The connection for what the repository writes itself, after the writer. Whether the writer's transaction is still
    /// the one that was begun shows at the savepoint that it began with: statements after its end would be committed one
    /// by one.
    pub(super) fn after_the_writer(&mut self) -> Result<&mut SqliteConnection, RepositoryError> {
        let guarded = std::mem::take(&mut self.guarded);
        let connection = self.begun().map_err(|source| RepositoryError::Database {
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

    /// Marks the place that a failed write is undone to.
    pub(crate) fn set_savepoint(&mut self) -> Result<(), RepositoryError> {
        let begun = self.sqlite().map(|_| ());
        begun.map_err(|source| RepositoryError::Database {
            action: "begin the transaction of the chunk",
            source: Box::new(source),
        })?;
        self.at_savepoint(SET_SAVEPOINT)
    }

    /// The write was successful.
    pub(crate) fn release_savepoint(&mut self) -> Result<(), RepositoryError> {
        self.at_savepoint(RELEASE_SAVEPOINT)
    }

    /// Undoes the write, and nothing else.
    pub(crate) fn undo_to_savepoint(&mut self) -> Result<(), RepositoryError> {
        self.at_savepoint(UNDO_TO_SAVEPOINT)
    }

    /// On an error SQLite may have ended the transaction by itself.
    fn at_savepoint(&mut self, statement: &str) -> Result<(), RepositoryError> {
        let done = self
            .begun()
            .and_then(|connection| connection.batch_execute(statement));
        done.map_err(|_| RepositoryError::TransactionEnded)
    }

    /// Rolls everything back, and is a new transaction for the same interval. Spec: CHUNK-RETRY-07, CHUNK-RETRY-08
    pub(crate) fn restart(&mut self) {
        // Closing a connection rolls back, whatever state it is in; nothing of ours has to succeed for that.
        self.open = None;
        self.guarded = false;
    }

    /// Commits, and gives the connection back for the next chunk.
    pub(super) fn commit(mut self) -> Result<(), RepositoryError> {
        self.commit_as("commit the chunk")
    }

    fn commit_as(&mut self, action: &'static str) -> Result<(), RepositoryError> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let committed = open
            .connection
            .sqlite()
            .and_then(AnsiTransactionManager::commit_transaction);
        committed.map_err(|source| RepositoryError::Database {
            action,
            source: Box::new(source),
        })?;
        self.pool.put_back(open.connection);
        Ok(())
    }
}

#[cfg(feature = "sabotage")]
impl ChunkTransaction {
    /// The fault `split-commit`.
    pub(super) fn commit_data_only(&mut self) -> Result<(), RepositoryError> {
        self.after_the_writer()?;
        self.commit_as("commit the data")
    }
}
