//! The tables of the example, and the first step, which creates them.

use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

table! {
    // No unique key, so that a flight written twice would be visible.
    late_flight (rowid) {
        rowid -> BigInt,
        job_instance_id -> BigInt,
        job_execution_id -> BigInt,
        record -> BigInt,
        month -> Text,
        minutes -> Integer,
        nearest -> Text,
    }
}

table! {
    // The calls of the logical transaction, in order.
    load_call (rowid) {
        rowid -> BigInt,
        job_instance_id -> BigInt,
        job_execution_id -> BigInt,
        call -> Text,
    }
}

/// Creates the tables if they do not exist.
#[derive(BatchArtifact)]
struct CreateTables {
    #[batch_context]
    job: JobContext,
}

#[batchlet("CreateTables")]
impl CreateTables {
    #[process]
    fn create(&self) -> Result<String, BatchError> {
        self.job.connect()?.sqlite()?.batch_execute(
            "CREATE TABLE IF NOT EXISTS late_flight (
                job_instance_id INTEGER NOT NULL, job_execution_id INTEGER NOT NULL, record INTEGER NOT NULL,
                month TEXT NOT NULL, minutes INTEGER NOT NULL, nearest TEXT NOT NULL);
             CREATE INDEX IF NOT EXISTS late_flight_instance ON late_flight (job_instance_id);
             CREATE TABLE IF NOT EXISTS load_call (
                job_instance_id INTEGER NOT NULL, job_execution_id INTEGER NOT NULL, call TEXT NOT NULL);",
        )?;
        Ok("CREATED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}
