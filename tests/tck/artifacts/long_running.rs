//! The batchlet that runs until it is stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use batch_runtime::prelude::*;
use diesel::prelude::*;

/// The statement that creates the table of the batchlets that run.
pub(crate) const CREATE_RUNNING: &str = "CREATE TABLE RUNNING (EXECUTION INTEGER NOT NULL)";

/// Runs until it is stopped, or ends at once, or fails. While it waits for a stop request there is a row in the table
/// `RUNNING`, so that the test need not guess when it runs.
#[derive(BatchArtifact)]
struct LongRunning {
    #[batch_property(name = "run.indefinitely")]
    indefinitely: Option<bool>,
    #[batch_property(name = "throw.exc.on.number.3")]
    fail: Option<bool>,
    #[batch_context]
    job: JobContext,
    is_stopped: AtomicBool,
}

#[batchlet("myLongRunningBatchlet")]
impl LongRunning {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        if self.fail.unwrap_or_default() {
            return Err(BatchError::msg("fails on purpose"));
        }
        if self.indefinitely.unwrap_or_default() {
            self.wait_for_stop()?;
            let canceled = "BATCHLET CANCELED BEFORE COMPLETION";
            self.job.set_exit_status(Some(canceled));
            return Ok(canceled.into());
        }
        let exit_status = match self.job.exit_status() {
            Some(before) => format!("GOOD.STEP.{before}"),
            None => {
                let replaced = "NOT.FINAL.ONE.SHOULD.HAVE.NO.EFFECT";
                self.job.set_exit_status(Some(replaced));
                "GOOD.STEP".into()
            }
        };
        self.job.set_exit_status(Some(&exit_status));
        Ok("BATCHLET RAN TO COMPLETION".into())
    }

    fn wait_for_stop(&self) -> Result<(), BatchError> {
        let mut connection = self.job.connect()?;
        let insert = format!("INSERT INTO RUNNING VALUES ({})", self.job.execution_id());
        diesel::sql_query(insert).execute(connection.sqlite()?)?;
        while !self.is_stopped.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    #[cancel]
    fn cancel(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }
}
