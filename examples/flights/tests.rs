//! Tests of the job with `batch-testing`.

use std::fs;
use std::path::{Path, PathBuf};

use batch_testing::{JobTest, crash_sweep};

const JOB: &str = "flights/flights.xml";

/// The job loads every flight of at least 100 miles, and writes the report.
#[test]
fn flights_are_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.csv");
    let run = JobTest::new(JOB)
        .system_property("data", "data")
        .parameter("report.file", report.display())
        .launch();
    run.assert_completed()
        .assert_steps(&["create-tables", "load-airports", "load-flights", "report"]);
    run.step("load-flights")
        .assert_reads(20_000)
        .assert_filters(303)
        .assert_writes(19_697);
    let mut database = run.database();
    assert_eq!(database.count("airport"), 3_376);
    assert_eq!(database.count("flight"), 19_697);
    let report = fs::read_to_string(report).expect("the report");
    assert_eq!(report.lines().count(), 11);
}

/// Wherever the process dies, each flight is in the table once, and the report is complete.
#[test]
fn a_crash_loses_or_duplicates_no_flight() {
    let folder = tempfile::tempdir().expect("a folder");
    let airports = first_lines("data/airports.csv", 30, folder.path());
    let flights = first_lines("data/flights.csv", 120, folder.path());
    crash_sweep(JobTest::new(JOB).system_property("data", "data"))
        .parameter("airports.file", airports.display())
        .parameter("flights.file", flights.display())
        .parameter("commit.interval", 50)
        .output("report.file", "report.csv")
        .sample(20)
        // A second launch is another execution.
        .ignore_column("flight.job_execution_id")
        .run();
}

/// Copies the beginning of a file: a sweep runs the job some hundred times.
fn first_lines(file: &str, count: usize, folder: &Path) -> PathBuf {
    let text = fs::read_to_string(file).expect("the file");
    let lines: Vec<&str> = text.lines().take(count).collect();
    let copy = folder.join(Path::new(file).file_name().expect("a name"));
    fs::write(&copy, lines.join("\n")).expect("a copy");
    copy
}
