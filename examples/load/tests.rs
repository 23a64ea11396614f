//! Tests of the job with `batch-testing`.

use std::fs;

use batch_testing::{JobTest, crash_sweep};

fn job() -> JobTest {
    JobTest::new("load/load.xml").system_property("data", "data")
}

/// One step alone.
#[test]
fn the_table_is_created() {
    let run = job().step("create-table").launch();
    run.assert_completed().assert_steps(&["create-table"]);
    assert_eq!(run.database().count("late_flight"), 0);
}

/// Wherever the process dies, each late flight is in the table once, and the report is complete.
#[test]
fn a_crash_loses_or_duplicates_no_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("flights.csv");
    fs::write(
        &file,
        "origin,destination,delay\nTUL,DFW,61\nDFW,TUL,5\nTUL,ORD,99\n",
    )
    .expect("the file");
    crash_sweep(job())
        .parameter("file", file.display())
        .parameter("commit.interval", 1)
        .output("report.file", "late-flights.csv")
        .sample(20)
        .run();
}
