//! The fixture of the tests in `per_backend/` for MySQL and MariaDB.

use batch_test_servers::Kind;

use crate::repository::ChunkTransaction;

pub(in crate::repository::diesel) use super::per_server::fixture::Place;

pub(super) const KIND: Kind = Kind::Mariadb;

/// The type for casts to integers.
pub(in crate::repository::diesel) const INTEGER: &str = "SIGNED";

/// Makes a session wait for locked rows for as short a time as possible.
pub(super) const SHORT_WAIT: &str = "SET SESSION innodb_lock_wait_timeout = 1";

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
