//! Tests of the job with `batch-testing`.

use batch_testing::crash_sweep;

/// Wherever the process dies, the copied table has each reading once.
#[test]
fn a_crash_loses_or_duplicates_no_reading() {
    crash_sweep("jobs/etl.xml")
        .parameter("rows", 30)
        .parameter("export.interval", 10)
        .parameter("import.interval", 10)
        .output("file", "readings.parquet")
        .output("differences.file", "differences.csv")
        // The file has the same rows after a crash, not the same bytes.
        .check(|database| database.rows("reading_copy"));
}
