//! Tests of the job with `batch-testing`.

use std::fs;
use std::path::{Path, PathBuf};

use batch_testing::{JobTest, crash_sweep};

fn job() -> JobTest {
    JobTest::new("partitions/partitions.xml").system_property("data", "data")
}

/// Each month has a partition.
#[test]
fn each_month_is_loaded() {
    let run = job().launch();
    run.assert_completed()
        .assert_steps(&["prepare", "load", "report"]);
    let partitions = run
        .steps()
        .iter()
        .filter(|step| step.step_name.starts_with("load:"));
    assert_eq!(partitions.count(), 3);
}

/// Wherever the process dies, all months are loaded in the end, and no flight twice.
#[test]
fn a_crash_loses_or_duplicates_no_flight() {
    let folder = tempfile::tempdir().expect("a folder");
    let flights = some_lines("data/flights.csv", folder.path());
    crash_sweep(job())
        .parameter("flights.file", flights.display())
        .parameter("commit.interval", 5)
        // All faults take half a minute.
        .sample(20)
        // The calls of the logical transaction differ after a crash, as does the execution that loaded a flight.
        .check(|database| database.rows_without("late_flight", &["job_execution_id"]));
}

/// Copies the header and some lines of each month.
fn some_lines(file: &str, folder: &Path) -> PathBuf {
    let text = fs::read_to_string(file).expect("the file");
    let lines: Vec<&str> = text.lines().collect();
    let some: Vec<&str> = lines[..1]
        .iter()
        .chain(lines[1..].iter().step_by(3_000))
        .copied()
        .collect();
    let copy = folder.join("flights.csv");
    fs::write(&copy, some.join("\n")).expect("a copy");
    copy
}
