//! What the tests in `common/` take for MySQL and MariaDB.

use std::sync::Arc;
use std::time::Duration;

use batch_test_servers::{Kind, shared};

use super::super::prefix::TablePrefix;
use super::{Repository, open};
use crate::clock::Clock;
use crate::repository::ChunkTransaction;

/// What a number is cast to.
pub(super) const INTEGER: &str = "SIGNED";

/// A database of a test's own.
pub(super) struct Place {
    url: String,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            url: shared(Kind::Mariadb).new_database(),
        }
    }

    pub(super) fn open(&self, clock: Arc<dyn Clock>, lease: Duration) -> Repository {
        open(&self.url, TablePrefix::default(), clock, lease).unwrap()
    }
}

/// Begins the transaction, as a writer does.
pub(super) fn begin(tx: &mut ChunkTransaction) {
    tx.mysql().unwrap();
}

/// Makes each `INSERT` or `UPDATE` of a table fail.
pub(super) fn refusal(event: &str, table: &str) -> String {
    format!(
        "CREATE TRIGGER refuse BEFORE {event} ON {table} FOR EACH ROW
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the true cause'"
    )
}

pub(super) fn end_of_refusal(_table: &str) -> String {
    "DROP TRIGGER refuse".into()
}
