//! What the tests in `common/` take for PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use batch_test_servers::{Kind, shared};

use super::super::prefix::TablePrefix;
use super::{Repository, open};
use crate::clock::Clock;
use crate::repository::ChunkTransaction;

/// What a number is cast to.
pub(super) const INTEGER: &str = "BIGINT";

/// A database of a test's own.
pub(super) struct Place {
    url: String,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            url: shared(Kind::Postgres).new_database(),
        }
    }

    pub(super) fn open(&self, clock: Arc<dyn Clock>, lease: Duration) -> Repository {
        open(&self.url, TablePrefix::default(), clock, lease).unwrap()
    }
}

/// Begins the transaction, as a writer does.
pub(super) fn begin(tx: &mut ChunkTransaction) {
    tx.postgres().unwrap();
}

/// Makes each `INSERT` or `UPDATE` of a table fail.
pub(super) fn refusal(event: &str, table: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'the true cause'; END $$;
         CREATE TRIGGER refuse BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
}

pub(super) fn end_of_refusal(table: &str) -> String {
    format!("DROP TRIGGER refuse ON {table}")
}
