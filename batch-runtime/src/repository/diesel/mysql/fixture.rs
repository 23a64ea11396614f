//! The fixture of the tests in `per_backend/` for MySQL and MariaDB.

use std::sync::Arc;
use std::time::Duration;

use batch_test_servers::{Kind, shared};

use super::{Db, open};
use crate::clock::Clock;
use crate::repository::ChunkTransaction;
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::session::SessionSettings;

/// The type for casts to integers.
pub(in crate::repository::diesel) const INTEGER: &str = "SIGNED";

/// A database of one test.
pub(in crate::repository::diesel) struct Place {
    url: String,
}

impl Place {
    pub(in crate::repository::diesel) fn new() -> Self {
        Self {
            url: shared(Kind::Mariadb).new_database(),
        }
    }

    pub(in crate::repository::diesel) fn open(
        &self,
        clock: Arc<dyn Clock>,
        lease: Duration,
    ) -> DieselRepository<Db> {
        open(&self.url, SessionSettings::default(), clock, lease).unwrap()
    }
}

/// Begins the transaction, as a writer does.
pub(in crate::repository::diesel) fn begin(tx: &mut ChunkTransaction) {
    tx.mysql().unwrap();
}

/// Returns the statement that makes each `INSERT` or `UPDATE` of a table fail.
pub(in crate::repository::diesel) fn refusal(event: &str, table: &str) -> String {
    format!(
        "CREATE TRIGGER refuse BEFORE {event} ON {table} FOR EACH ROW
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the true cause'"
    )
}

pub(in crate::repository::diesel) fn end_of_refusal(_table: &str) -> String {
    "DROP TRIGGER refuse".into()
}
