//! SIGTERM and Ctrl-C: a job stops, a second signal ends the process, and a launch resumes.
#![cfg(unix)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use batch_tests::operated::Operated;

const WAITS: &str = r#"<job id="waits"><step id="wait"><batchlet ref="Patient"/></step></job>"#;
const STUBBORN: &str = r#"<job id="stubborn"><step id="wait"><batchlet ref="Patient">
    <properties><property name="stubborn" value="true"/></properties></batchlet></step></job>"#;
const COUNTS: &str = r#"<job id="counts"><step id="count">
    <chunk reader="Numbers" processor="Same" writer="Nowhere" commit-interval="4"/></step></job>"#;

fn run(folder: &Path, arguments: &[&str]) -> Operated {
    for (id, job) in [("waits", WAITS), ("stubborn", STUBBORN), ("counts", COUNTS)] {
        fs::write(folder.join(format!("{id}.xml")), job).unwrap();
    }
    Operated::run(env!("CARGO_BIN_EXE_operated"), folder, arguments)
}

/// The job stops, with `#[cancel]` called; the exit code means STOPPED.
///
/// Spec: OP-17, BLET-06, STATUS-04
#[test]
fn a_signal_stops_the_job() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut job = run(folder.path(), &["launch", "waits"]);
        job.until("waiting");
        job.signal(signal);
        assert_eq!(
            job.until("stopping"),
            "stopping execution 1, which has 30 s to stop; a second signal ends the process\n"
        );
        job.until("cancelled");
        job.until("to resume from the last checkpoint, run the same `launch` again, or `restart 1`");
        assert_eq!(job.ends().code(), Some(3), "{signal}");
    }
}

/// A chunk stops at the current item, commits what it has, and the next launch resumes from there.
///
/// Spec: OP-17, RESTART-13
#[test]
fn a_job_stopped_by_a_signal_can_be_launched_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = run(folder.path(), &["launch", "counts"]);
    job.until("waiting");
    job.signal("TERM");
    job.until("stopping execution 1");
    assert_eq!(job.ends().code(), Some(3));
    let mut again = run(folder.path(), &["launch", "counts"]);
    assert_eq!(again.until("from"), "from 4\n");
    assert_eq!(again.ends().code(), Some(0));
}

/// A second signal ends a process whose job does not stop, like a crash: the next launch takes it over.
#[test]
fn a_second_signal_ends_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = run(folder.path(), &["launch", "stubborn"]);
    job.until("waiting");
    job.signal("TERM");
    job.until("stopping execution 1");
    job.signal("INT");
    assert_eq!(
        job.until("ended"),
        "process ended at once, like a crash; run the same `launch`, or `recover`, to resume from the last checkpoint\n"
    );
    let ended = job.ends();
    assert_eq!((ended.code(), ended.signal()), (Some(128 + 2), None));
    let mut again = run(folder.path(), &["launch", "stubborn"]);
    again.until("took over an execution whose owner is dead");
    again.until("waiting");
}

/// The shutdown time is limited.
#[test]
fn a_job_that_does_not_stop_in_time_is_left_running() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = run(folder.path(), &["launch", "stubborn", "--shutdown-timeout", "0"]);
    job.until("waiting");
    job.signal("TERM");
    job.until("execution 1 did not stop in time and is left running, like after a crash");
    assert_eq!(job.ends().code(), Some(1));
    let mut again = run(folder.path(), &["launch", "stubborn"]);
    again.until("took over an execution whose owner is dead");
}
