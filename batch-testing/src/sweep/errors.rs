//! Errors of the database, as a child process causes them: a refused transaction, or lost connections.

use std::thread;
use std::time::Duration;

use batch_runtime::repository::DatabaseKind;

use super::server::without_own_options;
use crate::database::TestDatabase;

/// The time after which the statements of the kit itself wait for a lock no longer, in milliseconds.
const LOCK_WAIT: &str = "PRAGMA busy_timeout = 5000";

/// The database of a run.
pub(super) struct Errors {
    url: String,
    kind: Option<DatabaseKind>,
    /// The repository's tables.
    tables: Vec<String>,
}

impl Errors {
    pub(super) fn new(url: &str, tables: Vec<String>) -> Self {
        Self {
            kind: DatabaseKind::named_in(url),
            url: without_own_options(url),
            tables,
        }
    }

    /// Lets the next transaction of the repository fail, or ends all sessions. Where that is not possible, nothing happens.
    pub(super) fn cause(&self) {
        let Ok(mut database) = TestDatabase::open(&self.url) else {
            return;
        };
        match self.kind {
            Some(DatabaseKind::Sqlite) => self.refuse(&mut database),
            Some(DatabaseKind::Postgresql) => disconnect(
                &mut database,
                "SELECT pid::text AS text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                 AND (application_name || ' ') LIKE (split_part(current_setting('application_name'), ' ', 1) || ' %')",
                |session| format!("SELECT pg_terminate_backend({session})"),
            ),
            _ => disconnect(
                &mut database,
                "SELECT CAST(ID AS CHAR) AS text FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()",
                |session| format!("KILL {session}"),
            ),
        }
    }

    /// Rejects each write of the repository's tables, by triggers.
    fn refuse(&self, database: &mut TestDatabase) {
        let triggers = self.triggers().map(|(name, table, operation)| {
            format!(
                "CREATE TRIGGER {name} BEFORE {operation} ON {table} \
                 BEGIN SELECT RAISE(ABORT, 'simulated by the crash sweep'); END;"
            )
        });
        let triggers: String = triggers.collect();
        let _ = database.try_execute(&format!("{LOCK_WAIT}; BEGIN IMMEDIATE; {triggers} COMMIT"));
    }

    /// Ends the effect of [`cause`](Self::cause).
    pub(super) fn end(&self) {
        if self.kind != Some(DatabaseKind::Sqlite) {
            return;
        }
        let Ok(mut database) = TestDatabase::open(&self.url) else {
            return;
        };
        let triggers = self
            .triggers()
            .map(|(name, ..)| format!("DROP TRIGGER IF EXISTS {name};"));
        let triggers: String = triggers.collect();
        let _ = database.try_execute(&format!("{LOCK_WAIT}; BEGIN IMMEDIATE; {triggers} COMMIT"));
    }

    fn triggers(&self) -> impl Iterator<Item = (String, &String, &'static str)> {
        let operations = ["INSERT", "UPDATE", "DELETE"];
        let of_table =
            move |table| operations.map(|one| (format!("batch_testing_{table}_{one}"), table, one));
        self.tables.iter().flat_map(of_table)
    }
}

/// Ends sessions, and waits until they have ended.
fn disconnect(database: &mut TestDatabase, sessions: &str, end: impl Fn(&str) -> String) {
    for _ in 0..1_000 {
        let open = database.select(sessions);
        if open.is_empty() {
            return;
        }
        for session in &open {
            // It may have ended by itself.
            let _ = database.try_execute(&end(session));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use batch_runtime::{BatchRuntime, JobOperator};

    use super::*;

    #[test]
    fn a_transaction_of_the_repository_is_refused_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("batch.db").display());
        let operator = BatchRuntime::builder()
            .repository(&url)
            .build()
            .unwrap()
            .job_operator();
        let tables = TestDatabase::of(&operator).table_names();
        let insert = |operator: &JobOperator| {
            let mut database = TestDatabase::of(operator);
            database.try_execute("INSERT INTO BATCH_JOB_INSTANCE VALUES (NULL, 0, 'a', 'b')")
        };
        let errors = Errors::new(&url, tables);
        errors.cause();
        let error = insert(&operator).unwrap_err();
        assert_eq!(error.to_string(), "simulated by the crash sweep");
        errors.end();
        insert(&operator).unwrap();
    }
}
