//! Tests of the job with `batch-testing`.

use batch_testing::crash_sweep;

/// Wherever the process dies, each account gets one statement.
#[test]
fn a_crash_loses_or_duplicates_no_statement() {
    crash_sweep("operator/statements.xml")
        .parameter("accounts", 25)
        .sample(20)
        .run();
}
