//! What the tests in `common/` take for SQLite.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::{Repository, TablePrefix, open};
use crate::clock::Clock;
use crate::repository::ChunkTransaction;

/// What a number is cast to.
pub(super) const INTEGER: &str = "INTEGER";

/// A database of a test's own.
pub(super) struct Place {
    folder: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn open(&self, clock: Arc<dyn Clock>, lease: Duration) -> Repository {
        let file = self.folder.path().join("batch.db");
        let url = format!("sqlite://{}?synchronous=normal", file.display());
        open(&url, TablePrefix::default(), clock, lease).unwrap()
    }
}

/// Begins the transaction, as a writer does.
pub(super) fn begin(tx: &mut ChunkTransaction) {
    tx.sqlite().unwrap();
}

/// Makes each `INSERT` or `UPDATE` of a table fail, and takes the transaction with it.
pub(super) fn refusal(event: &str, table: &str) -> String {
    format!(
        "CREATE TRIGGER refuse BEFORE {event} ON {table} BEGIN SELECT RAISE(ROLLBACK, 'the true cause'); END"
    )
}

pub(super) fn end_of_refusal(_table: &str) -> String {
    "DROP TRIGGER refuse".into()
}
