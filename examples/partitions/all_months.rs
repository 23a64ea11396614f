//! The logical transaction: loads all months, or none.

use batch_runtime::prelude::*;
use diesel::prelude::*;

use super::tables::{late_flight, load_call};

/// Deletes the loaded rows unless all months could be loaded; records each call for the report.
#[derive(BatchArtifact)]
struct AllMonths {
    #[batch_context]
    job: JobContext,
}

#[logical_tx("AllMonths")]
impl AllMonths {
    #[logical_tx_begin]
    fn begin(&mut self) -> Result<(), BatchError> {
        self.note(self.job.connect()?.sqlite()?, "begin")
    }

    /// Runs until it has returned once: again after the process died in it, and even with nothing to undo. It may be called
    /// any number of times.
    #[logical_tx_rollback]
    fn undo(&mut self) -> Result<(), BatchError> {
        self.job.connect()?.sqlite()?.immediate_transaction(|connection| {
            let of_this_instance = late_flight::job_instance_id.eq(self.job.instance_id().0);
            diesel::delete(late_flight::table)
                .filter(of_this_instance)
                .execute(connection)?;
            self.note(connection, "rollback")
        })
    }

    #[logical_tx_before_completion]
    fn before_completion(&mut self) -> Result<(), BatchError> {
        self.note(self.job.connect()?.sqlite()?, "before completion")
    }

    /// `COMMIT` or `ROLLBACK`.
    #[logical_tx_after_completion]
    fn after_completion(&mut self, status: &str) -> Result<(), BatchError> {
        self.note(self.job.connect()?.sqlite()?, status)
    }

    fn note(&self, connection: &mut SqliteConnection, call: &str) -> Result<(), BatchError> {
        diesel::insert_into(load_call::table)
            .values((
                load_call::job_instance_id.eq(self.job.instance_id().0),
                load_call::job_execution_id.eq(self.job.execution_id().0),
                load_call::call.eq(call),
            ))
            .execute(connection)?;
        Ok(())
    }
}
