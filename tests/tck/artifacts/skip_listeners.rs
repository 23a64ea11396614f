//! Listeners of skips and of retries.

use batch_runtime::prelude::*;

use super::exceptions::is_parent;

/// Sets the exit status of the job to the verdict on an exception.
fn judge(job: &JobContext, ex: &BatchError, good: &str, bad: &str) {
    job.set_exit_status(Some(if is_parent(ex) { good } else { bad }));
}

/// Checks the exception of a skipped read.
#[derive(BatchArtifact)]
struct SkippedRead {
    #[batch_context]
    job: JobContext,
}

#[skip_listener("mySkipReadListener")]
impl SkippedRead {
    #[on_skip_in_read]
    fn skipped(&mut self, ex: &BatchError) {
        let (good, bad) = (
            "MySkipReadListener: GOOD STATUS",
            "MySkipReadListener: BAD STATUS",
        );
        judge(&self.job, ex, good, bad);
    }
}

/// Checks the exception of a skipped item.
#[derive(BatchArtifact)]
struct SkippedItem {
    #[batch_context]
    job: JobContext,
}

#[skip_listener("mySkipProcessListener")]
impl SkippedItem {
    #[on_skip_in_process]
    fn skipped(&mut self, ex: &BatchError, _item: &i64) {
        let good = "MySkipProcessListener: GOOD STATUS, GOOD OBJ PASSED";
        judge(&self.job, ex, good, "MySkipProcessListener: BAD STATUS");
    }
}

/// Checks the exception of a skipped write.
#[derive(BatchArtifact)]
struct SkippedWrite {
    #[batch_context]
    job: JobContext,
}

#[skip_listener("mySkipWriteListener")]
impl SkippedWrite {
    #[on_skip_in_write]
    fn skipped(&mut self, ex: &BatchError, items: &[i64]) {
        let good = match items.is_empty() {
            false => "MySkipWriteListener: GOOD STATUS, GOOD OBJS PASSED IN",
            true => "MySkipWriteListener: no items",
        };
        judge(&self.job, ex, good, "MySkipWriteListener: BAD STATUS");
    }
}

/// Checks that one read was skipped.
#[derive(BatchArtifact)]
struct OneSkippedRead {
    #[batch_context]
    job: JobContext,
    skips: u32,
}

#[skip_listener("mySkipReaderExceedListener")]
impl OneSkippedRead {
    #[on_skip_in_read]
    fn skipped(&mut self, ex: &BatchError) {
        self.skips += 1;
        if is_parent(ex) {
            let is_first = self.skips == 1;
            let verdict = if is_first {
                "GOOD STATUS"
            } else {
                "BAD STATUS_INCORRECT_NUMBER_SKIPS"
            };
            let exit_status = format!("MySkipReadListener: {verdict}");
            self.job.set_exit_status(Some(&exit_status));
        }
    }
}

/// The lists that `VerifiesSkippedWrites` expects: those that `SkipWriter` fails at, in chunks of three.
const SKIPPED: [[i64; 3]; 3] = [[16, 17, 18], [25, 26, 27], [34, 35, 36]];

/// Checks the items of skipped writes.
#[derive(BatchArtifact)]
struct VerifiesSkippedWrites {
    #[batch_property(name = "test.itemcount")]
    item_count: usize,
    #[batch_context]
    job: JobContext,
    skips: usize,
}

#[skip_listener("verifySkipWriteListener")]
impl VerifiesSkippedWrites {
    #[on_skip_in_write]
    fn skipped(&mut self, ex: &BatchError, items: &[i64]) -> Result<(), BatchError> {
        let is_good = SKIPPED.get(self.skips).is_some_and(|expected| expected == items)
            && items.len() == self.item_count
            && is_parent(ex);
        self.skips += 1;
        if !is_good {
            return Err(BatchError::msg(format!("the items {items:?} were skipped")));
        }
        let exit_status = "VerifySkipWriteListener: GOOD STATUS, GOOD OBJS PASSED IN";
        self.job.set_exit_status(Some(exit_status));
        Ok(())
    }
}

/// What a retry listener sets as the exit status of the job.
const RETRIED: &str = "Retry listener invoked";

/// Notes the retry of a read.
#[derive(BatchArtifact)]
struct RetriedRead {
    #[batch_context]
    job: JobContext,
}

#[retry_listener("myRetryReadListener")]
impl RetriedRead {
    #[on_retry_read_exception]
    fn retried(&mut self, _ex: &BatchError) {
        self.job.set_exit_status(Some(RETRIED));
    }
}

/// Checks the exception of a retried read.
#[derive(BatchArtifact)]
struct ChecksRetriedRead {
    #[batch_context]
    job: JobContext,
}

#[retry_listener("myMultipleExceptionsRetryReadListener")]
impl ChecksRetriedRead {
    #[on_retry_read_exception]
    fn retried(&mut self, ex: &BatchError) {
        let good = "MyMultipleExceptionsRetryReadListener: GOOD STATUS";
        judge(
            &self.job,
            ex,
            good,
            "MyMultipleExceptionsRetryReadListener: BAD STATUS",
        );
    }
}

/// Notes the retry of the processor.
#[derive(BatchArtifact)]
struct RetriedItem {
    #[batch_context]
    job: JobContext,
}

#[retry_listener("myRetryProcessListener")]
impl RetriedItem {
    #[on_retry_process_exception]
    fn retried(&mut self, _ex: &BatchError, _item: &i64) {
        self.job.set_exit_status(Some(RETRIED));
    }
}

/// Notes the retry of a write.
#[derive(BatchArtifact)]
struct RetriedWrite {
    #[batch_context]
    job: JobContext,
}

#[retry_listener("myRetryWriteListener")]
impl RetriedWrite {
    #[on_retry_write_exception]
    fn retried(&mut self, _ex: &BatchError, _items: &[i64]) {
        self.job.set_exit_status(Some(RETRIED));
    }
}
