//! Tests of the job with `batch-testing`.

use batch_testing::{JobTest, SkippedItems, crash_sweep};

fn job() -> JobTest {
    JobTest::new("skip-retry/skip-retry.xml").system_property("data", "data")
}

/// Bad rows are skipped in each phase, and the others are booked.
#[test]
fn bad_rows_are_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    // Payments are not `Clone`: only the errors are collected.
    let skipped = SkippedItems::<()>::new();
    let run = job()
        .parameter("rejects.file", file("rejects.csv"))
        .parameter("rejects.rows", file("rows.csv"))
        .skipped(&skipped)
        .launch();
    run.assert_completed();
    run.step("book")
        .assert_reads(23)
        .assert_process_skips(2)
        .assert_writes(20);
    assert_eq!(run.database().count("payment"), 20);
    let errors = skipped.errors();
    assert_eq!(errors.len(), 6);
    assert_eq!(errors[4], "a payment with this number is already booked");
}

/// Wherever the process dies, each payment is booked or rejected once.
#[test]
fn a_crash_changes_neither_bookings_nor_rejects() {
    crash_sweep(job())
        .output("rejects.file", "rejects.csv")
        .output("rejects.rows", "rejected-payments.csv")
        .run();
}
