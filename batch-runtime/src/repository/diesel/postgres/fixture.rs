//! The fixture of the tests in `per_backend/` for PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use batch_test_servers::{Kind, shared};

use super::{Db, open};
use crate::clock::Clock;
use crate::repository::ChunkTransaction;
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::session::SessionSettings;

/// The type for casts to integers.
pub(in crate::repository::diesel) const INTEGER: &str = "BIGINT";

/// A database of one test.
pub(in crate::repository::diesel) struct Place {
    url: String,
}

impl Place {
    pub(in crate::repository::diesel) fn new() -> Self {
        Self {
            url: shared(Kind::Postgres).new_database(),
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
