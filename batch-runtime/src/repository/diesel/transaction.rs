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
    connection: RepositoryConnection,
    pool: Pool,
    begun: bool,
    /// Whether the savepoint is set that tells a transaction that was ended behind our back.
    guarded: bool,
}

const OPEN_GUARD: &str = "SAVEPOINT batch_chunk";
const CLOSE_GUARD: &str = "RELEASE batch_chunk";

impl ChunkTransaction {
    pub(super) fn new(connection: RepositoryConnection, pool: Pool) -> Self {
        Self {
            connection,
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
            self.connection.sqlite()?.batch_execute(OPEN_GUARD)?;
            self.guarded = true;
        }
        self.connection.sqlite()
    }

    fn begin(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::begin_transaction_sql(self.connection.sqlite()?, "BEGIN IMMEDIATE")?;
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
        let connection = self
            .connection
            .sqlite()
            .map_err(failed("record the checkpoint"))?;
        if self.guarded {
            connection
                .batch_execute(CLOSE_GUARD)
                .map_err(|_| RepositoryError::TransactionEnded)?;
            self.guarded = false;
        }
        Ok(connection)
    }

    /// Commits, and gives the connection back for the next chunk.
    pub(super) fn commit(mut self) -> Result<(), RepositoryError> {
        let committed = self
            .connection
            .sqlite()
            .and_then(AnsiTransactionManager::commit_transaction);
        committed.map_err(|source| RepositoryError::Database {
            action: "commit the chunk",
            source: Box::new(source),
        })?;
        self.pool.put_back(self.connection);
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
