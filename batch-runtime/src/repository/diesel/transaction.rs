//! The chunk transaction: what a writer writes through it commits together with the checkpoint.

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;

use super::connection::{Pool, RepositoryConnection};
use crate::repository::RepositoryError;

/// The transaction of one checkpoint interval, on the database of the job repository.
///
/// A writer that takes it as its second parameter is exactly-once: its rows, the checkpoint and the counters are
/// committed together or not at all. The database's transaction begins at the first use, so that reading and
/// processing hold no lock. Dropped without a commit, everything is rolled back.
///
/// Spec: CHUNK-LOOP-12, D-79
pub struct ChunkTransaction {
    /// `None` only after a restart for which there was no connection.
    connection: Option<RepositoryConnection>,
    pool: Pool,
    begun: bool,
    /// Whether the savepoint is set that tells a transaction that was ended behind our back.
    guarded: bool,
}

const SET_SAVEPOINT: &str = "SAVEPOINT batch_write";
const RELEASE_SAVEPOINT: &str = "RELEASE batch_write";
const UNDO_TO_SAVEPOINT: &str = "ROLLBACK TO batch_write; RELEASE batch_write";

const OPEN_GUARD: &str = "SAVEPOINT batch_chunk";
const CLOSE_GUARD: &str = "RELEASE batch_chunk";

impl ChunkTransaction {
    pub(super) fn new(connection: RepositoryConnection, pool: Pool) -> Self {
        Self {
            connection: Some(connection),
            pool,
            begun: false,
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
        if !self.begun {
            self.begin()?;
            self.database()?.batch_execute(OPEN_GUARD)?;
            self.guarded = true;
        }
        self.database()
    }

    fn database(&mut self) -> QueryResult<&mut SqliteConnection> {
        match &mut self.connection {
            Some(connection) => connection.sqlite(),
            None => Err(diesel::result::Error::BrokenTransactionManager),
        }
    }

    fn begin(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::begin_transaction_sql(self.database()?, "BEGIN IMMEDIATE")?;
        self.begun = true;
        Ok(())
    }

    /// The connection for what the repository writes itself, after the writer. Whether the writer's transaction is still
    /// the one that was begun shows at the savepoint that it began with: statements after its end would be committed one
    /// by one.
    pub(super) fn after_the_writer(&mut self) -> Result<&mut SqliteConnection, RepositoryError> {
        let failed = |action| {
            move |source| RepositoryError::Database {
                action,
                source: Box::new(source),
            }
        };
        if !self.begun {
            self.begin()
                .map_err(failed("begin the transaction of the checkpoint"))?;
        }
        let guarded = std::mem::take(&mut self.guarded);
        let connection = self.database().map_err(failed("record the checkpoint"))?;
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
            .database()
            .and_then(|connection| connection.batch_execute(statement));
        done.map_err(|_| RepositoryError::TransactionEnded)
    }

    /// Rolls everything back, and is a new transaction for the same interval. Spec: CHUNK-RETRY-07, CHUNK-RETRY-08
    pub(crate) fn restart(&mut self) -> Result<(), RepositoryError> {
        // Closing a connection rolls back, whatever state it is in; nothing of ours has to succeed for that. It comes before
        // the next one is opened, which would wait for its lock.
        self.connection = None;
        self.connection = Some(self.pool.take()?);
        self.begun = false;
        self.guarded = false;
        Ok(())
    }

    /// Commits, and gives the connection back for the next chunk.
    pub(super) fn commit(mut self) -> Result<(), RepositoryError> {
        let committed = self
            .database()
            .and_then(AnsiTransactionManager::commit_transaction);
        committed.map_err(|source| RepositoryError::Database {
            action: "commit the chunk",
            source: Box::new(source),
        })?;
        if let Some(connection) = self.connection {
            self.pool.put_back(connection);
        }
        Ok(())
    }
}

#[cfg(feature = "sabotage")]
impl ChunkTransaction {
    /// The fault `split-commit`.
    pub(super) fn commit_data_only(&mut self) -> Result<(), RepositoryError> {
        let committed = self
            .after_the_writer()
            .map(AnsiTransactionManager::commit_transaction)?;
        committed.map_err(|source| RepositoryError::Database {
            action: "commit the data",
            source: Box::new(source),
        })?;
        self.begun = false;
        Ok(())
    }
}
