//! The fixture of the tests in `per_backend/` for PostgreSQL.

use batch_test_servers::Kind;

use crate::repository::ChunkTransaction;

pub(in crate::repository::diesel) use super::per_server::fixture::Place;

pub(super) const KIND: Kind = Kind::Postgres;

/// The type for casts to integers.
pub(in crate::repository::diesel) const INTEGER: &str = "BIGINT";

/// Makes a session wait for locked rows for as short a time as possible.
pub(super) const SHORT_WAIT: &str = "SET lock_timeout = '10ms'";

/// Begins the transaction, as a writer does.
pub(in crate::repository::diesel) fn begin(tx: &mut ChunkTransaction) {
    tx.postgres().unwrap();
}

/// Returns the statement that makes each `INSERT` or `UPDATE` of a table fail.
pub(in crate::repository::diesel) fn refusal(event: &str, table: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'the true cause'; END $$;
         CREATE TRIGGER refuse BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
}

pub(in crate::repository::diesel) fn end_of_refusal(table: &str) -> String {
    format!("DROP TRIGGER refuse ON {table}")
}
