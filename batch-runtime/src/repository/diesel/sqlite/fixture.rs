//! The fixture of the tests in `per_backend/` for SQLite.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::{Db, open};
use crate::clock::Clock;
use crate::repository::ChunkTransaction;
use crate::repository::RepositoryConfig;
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::session::SessionSettings;

/// The type for casts to integers.
pub(in crate::repository::diesel) const INTEGER: &str = "INTEGER";

/// A database of one test.
pub(in crate::repository::diesel) struct Place {
    folder: TempDir,
}

impl Place {
    pub(in crate::repository::diesel) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(in crate::repository::diesel) fn open(
        &self,
        clock: Arc<dyn Clock>,
        lease: Duration,
    ) -> DieselRepository<Db> {
        let file = self.folder.path().join("batch.db");
        let url = format!("sqlite://{}?synchronous=normal", file.display());
        let config = RepositoryConfig {
            clock,
            ..RepositoryConfig::with_lease(lease)
        };
        open(&url, SessionSettings::default(), config).unwrap()
    }
}

/// Begins the transaction, as a writer does.
pub(in crate::repository::diesel) fn begin(tx: &mut ChunkTransaction) {
    tx.sqlite().unwrap();
}

/// Returns the statement that makes each `INSERT` or `UPDATE` of a table fail, and takes the transaction with it.
pub(in crate::repository::diesel) fn refusal(event: &str, table: &str) -> String {
    format!(
        "CREATE TRIGGER refuse BEFORE {event} ON {table} BEGIN SELECT RAISE(ROLLBACK, 'the true cause'); END"
    )
}

pub(in crate::repository::diesel) fn end_of_refusal(_table: &str) -> String {
    "DROP TRIGGER refuse".into()
}
