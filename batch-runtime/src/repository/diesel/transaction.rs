//! The chunk transaction: what a writer writes through it commits together with the checkpoint.

use diesel::connection::{AnsiTransactionManager, TransactionManager};
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
}

impl ChunkTransaction {
    pub(super) fn new(connection: RepositoryConnection, pool: Pool) -> Self {
        Self {
            connection,
            pool,
            begun: false,
        }
    }

    /// The diesel connection, inside the transaction, when the repository is on SQLite. Do not commit or roll back
    /// on it; a nested `transaction` is a savepoint, and welcome.
    ///
    /// # Errors
    /// When the transaction cannot begin (another writer held the database for ten seconds), or when the repository
    /// is on another database.
    pub fn sqlite(&mut self) -> QueryResult<&mut SqliteConnection> {
        let connection = self.connection.sqlite()?;
        if !self.begun {
            AnsiTransactionManager::begin_transaction_sql(connection, "BEGIN IMMEDIATE")?;
            self.begun = true;
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
    pub(super) fn commit_data_only(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::commit_transaction(self.sqlite()?)?;
        self.begun = false;
        Ok(())
    }
}
