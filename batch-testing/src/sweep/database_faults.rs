//! Errors of the database, as a child process causes them: a rejected write, or lost connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use batch_runtime::repository::{DatabaseKind, RepositoryUrl};

use crate::database::TestDatabase;

/// The message of rejected writes.
pub(super) const MESSAGE: &str = "simulated by the crash sweep";

/// The faults of the database of a run.
pub(super) struct DatabaseFaults {
    url: RepositoryUrl,
    /// The repository's tables.
    tables: Vec<String>,
    /// The number of the connection whose transaction is rejected; 0 if there is none.
    rejected: AtomicUsize,
}

impl DatabaseFaults {
    pub(super) fn new(url: RepositoryUrl, tables: Vec<String>) -> Self {
        Self {
            url,
            tables,
            rejected: AtomicUsize::new(0),
        }
    }

    /// Returns whether the database is on a server.
    pub(super) fn has_server(&self) -> bool {
        self.url.database() != DatabaseKind::Sqlite
    }

    /// Rejects the writes of the transaction that a connection begins (SQLite), or ends all sessions (servers). Returns whether the
    /// fault has happened already.
    pub(super) fn cause(&self, connection: usize) -> Result<bool, String> {
        let mut database = TestDatabase::open(&self.url)?;
        match self.url.database() {
            DatabaseKind::Sqlite => {
                self.reject_writes(&mut database)?;
                self.rejected.store(connection, Ordering::Relaxed);
                Ok(false)
            }
            DatabaseKind::Postgresql => disconnect(
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
    fn reject_writes(&self, database: &mut TestDatabase) -> Result<(), String> {
        let triggers = self.triggers().map(|(name, table, operation)| {
            format!("CREATE TRIGGER {name} BEFORE {operation} ON {table} BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END;")
        });
        execute(database, &triggers.collect::<String>())
    }

    /// Ends the rejection if it applied to the transaction of this connection, which has ended.
    pub(super) fn transaction_ended(&self, connection: usize) -> Result<(), String> {
        let is_its = self
            .rejected
            .compare_exchange(connection, 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if is_its { self.clear() } else { Ok(()) }
    }

    /// Ends the rejection that a process has left.
    pub(super) fn clear(&self) -> Result<(), String> {
        if self.has_server() {
            return Ok(());
        }
        let triggers = self
            .triggers()
            .map(|(name, ..)| format!("DROP TRIGGER IF EXISTS {name};"));
        execute(&mut TestDatabase::open(&self.url)?, &triggers.collect::<String>())
    }

    fn triggers(&self) -> impl Iterator<Item = (String, &String, &'static str)> {
        let operations = ["INSERT", "UPDATE", "DELETE"];
        let of_table =
            move |table| operations.map(|one| (format!("batch_testing_{table}_{one}"), table, one));
        self.tables.iter().flat_map(of_table)
    }
}

/// Executes statements in a transaction.
fn execute(database: &mut TestDatabase, statements: &str) -> Result<(), String> {
    let done = database.try_execute(&format!("BEGIN IMMEDIATE; {statements} COMMIT"));
    done.map_err(|error| error.to_string())
}

/// Ends sessions, and waits until they have ended. Returns whether there were any.
fn disconnect(
    database: &mut TestDatabase,
    sessions: &str,
    end: impl Fn(&str) -> String,
) -> Result<bool, String> {
    let mut found = false;
    for _ in 0..1_000 {
        let open = database.try_select(sessions).map_err(|error| error.to_string())?;
        if open.is_empty() {
            return Ok(found);
        }
        found = true;
        for session in &open {
            // It may have ended by itself.
            let _ = database.try_execute(&end(session));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err("the sessions do not end".to_owned())
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use batch_runtime::{BatchRuntime, JobOperator};

    use super::*;

    #[test]
    fn writes_of_the_repository_are_rejected_until_the_transaction_ends() {
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
        let faults = DatabaseFaults::new(url.parse().unwrap(), tables);
        assert_eq!(faults.cause(3), Ok(false));
        faults.transaction_ended(4).unwrap();
        let error = insert(&operator).unwrap_err();
        assert_eq!(error.to_string(), MESSAGE);
        faults.transaction_ended(3).unwrap();
        insert(&operator).unwrap();
    }
}
