//! `ChunkTests` and `RetryListenerTests`: skips and retries.

use batch_runtime::BatchStatus::{Completed, Failed};

use crate::case::{Case, case};

/// The exit statuses of the skip listeners.
const READ_SKIPPED: &str = "MySkipReadListener: GOOD STATUS";
const ITEM_SKIPPED: &str = "MySkipProcessListener: GOOD STATUS, GOOD OBJ PASSED";
const WRITE_SKIPPED: &str = "MySkipWriteListener: GOOD STATUS, GOOD OBJS PASSED IN";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = skips();
    cases.extend(exceeded());
    cases.extend(retries());
    cases
}

fn skips() -> Vec<Case> {
    vec![
        case("ChunkTests.testChunkSkipRead", "chunkSkipInitialTest")
            .start("execution.number=1, readrecord.fail=1,3, app.arraysize=30")
            .ends(Completed, READ_SKIPPED),
        case("ChunkTests.testChunkSkipProcess", "chunkSkipInitialTest")
            .start("execution.number=1, processrecord.fail=7,13, app.arraysize=30")
            .ends(Completed, ITEM_SKIPPED),
        case("ChunkTests.testChunkSkipWrite", "chunkSkipInitialTest")
            .start("execution.number=1, writerecord.fail=1,3, app.arraysize=30")
            .ends(Completed, WRITE_SKIPPED),
        on_error("ChunkTests.testChunkSkipOnError", "chunkSkipOnErrorTest"),
    ]
}

/// The three runs of a job whose listeners note an error that is skipped or retried.
fn on_error(method: &'static str, file: &'static str) -> Case {
    case(method, file)
        .start("execution.number=1, readrecord.fail=1,3, app.arraysize=30")
        .ends(Completed, "MyItemReadListenerImpl.onReadError")
        .start("execution.number=1, processrecord.fail=7,13, app.arraysize=30")
        .ends(Completed, "MyItemProcessListenerImpl.onProcessError")
        .start("execution.number=1, writerecord.fail=1,3, app.arraysize=30")
        .ends(Completed, "MyItemWriteListenerImpl.onWriteError")
}

fn exceeded() -> Vec<Case> {
    vec![
        case("ChunkTests.testChunkSkipReadExceedSkip", "chunkSkipExceededTest")
            .start("execution.number=1, readrecord.fail=1,2, app.arraysize=30")
            .ends(Failed, READ_SKIPPED),
        case(
            "ChunkTests.testChunkSkipProcessExceedSkip",
            "chunkSkipExceededTest",
        )
        .start("execution.number=1, processrecord.fail=5,7, app.arraysize=30")
        .ends(Failed, ITEM_SKIPPED),
        case("ChunkTests.testChunkSkipWriteExceedSkip", "chunkSkipExceededTest")
            .start("execution.number=1, writerecord.fail=2,8, app.arraysize=30")
            .ends(Failed, WRITE_SKIPPED),
        case(
            "ChunkTests.testChunkSkipReadNoSkipChildEx",
            "chunkSkipNoSkipChildExTest",
        )
        .start("execution.number=1, readrecord.fail=1,2,3, app.arraysize=30")
        .ends(Failed, READ_SKIPPED),
    ]
}

fn retries() -> Vec<Case> {
    vec![
        case("ChunkTests.testChunkRetryRead", "chunkRetryInitialTest")
            .start("execution.number=1, readrecord.fail=8,13,22, app.arraysize=30")
            .ends(Completed, "COMPLETED"),
        on_error("ChunkTests.testChunkRetryOnError", "chunkRetryOnError"),
        case(
            "RetryListenerTests.testRetryReadListener",
            "job_retry_listener_test",
        )
        .start("execution.number=1, readrecord.fail=8,13,22, app.arraysize=30")
        .ends(Failed, "Retry listener invoked"),
        case(
            "RetryListenerTests.testRetryProcessListener",
            "job_retry_listener_test",
        )
        .start("execution.number=1, processrecord.fail=8,13,22, app.arraysize=30")
        .ends(Failed, "Retry listener invoked"),
        case(
            "RetryListenerTests.testRetryWriteListener",
            "job_retry_listener_test",
        )
        .start("execution.number=1, writerecord.fail=8,13,22, app.arraysize=30")
        .ends(Failed, "Retry listener invoked"),
    ]
}
