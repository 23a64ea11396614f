//! Runs of processes that are killed: those that close their executions end them.

use std::fs;
use std::process::Stdio;

use batch_tests::process::spawn_until;
use insta::assert_snapshot;

use crate::ends::{LOAD, held};
use crate::program::{CREATE, Tracked};
use crate::shown::lines;

/// Launches the job, and kills its process while it waits.
fn killed() -> Tracked {
    let tracked = held();
    kill(&tracked, 5);
    fs::write(tracked.path().join("go"), "").unwrap();
    tracked
}

/// Launches the job, and kills its process when it waits and this number of events have arrived.
fn kill(tracked: &Tracked, events: usize) {
    let mut command = tracked.command(&["launch", "job"]);
    command.stdin(Stdio::null()).env("BATCH_CRASH_LIMIT", "1");
    let mut killed = spawn_until(command, "waiting");
    tracked.receiver.wait_for(events);
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().code(), None, "it ends by the signal");
}

/// Returns the events after the killed process's, with the numbers of its runs.
fn after_kill(tracked: &Tracked) -> String {
    let all = lines(&tracked.receiver.events(), &tracked.path());
    let killed = "  -> sqlite:///batch.db payment (id INTEGER, amount REAL)\n";
    let (_, after) = all.split_once(killed).unwrap();
    after.to_owned()
}

/// The process that takes an execution over ends its runs. The restart is another run.
///
/// Spec: LIN-03, LIN-05, LIN-10, OBS-07
#[test]
fn the_restart_ends_the_runs_of_a_killed_process() {
    let tracked = killed();
    tracked.launch(0, &[]);
    assert_snapshot!(lines(&tracked.receiver.events(), &tracked.path()), @r#"
    START #1 job
    START #2 job.create parent=#1:job root=#1:job
    COMPLETE #2 job.create parent=#1:job root=#1:job
    START #3 job.load parent=#1:job root=#1:job
    RUNNING #3 job.load parent=#1:job root=#1:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    FAIL #3 job.load parent=#1:job error="the process that ran it died or lost its lease"
    FAIL #1 job error="the process that ran it died or lost its lease"
    START #4 job
    START #5 job.load parent=#4:job root=#4:job
    RUNNING #5 job.load parent=#4:job root=#4:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    COMPLETE #5 job.load parent=#4:job root=#4:job
      <- file /in.csv 3 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 3 rows
    COMPLETE #4 job
    "#);
}

/// Spec: LIN-10
#[test]
fn an_abandoned_execution_aborts_its_runs() {
    let tracked = killed();
    tracked.run(0, &["abandon", "1"], &[]);
    assert_snapshot!(after_kill(&tracked), @r#"
    ABORT #3 job.load parent=#1:job
    ABORT #1 job
    "#);
    // It is closed already.
    tracked.run(0, &["recover"], &[]);
    assert_eq!(tracked.receiver.events().len(), 7);
}

/// Spec: LIN-10
#[test]
fn a_stop_of_a_dead_execution_aborts_its_runs() {
    let tracked = killed();
    tracked.run(0, &["stop", "1"], &[]);
    assert_snapshot!(after_kill(&tracked), @r#"
    ABORT #3 job.load parent=#1:job
    ABORT #1 job
    "#);
}

/// Spec: LIN-10
#[test]
fn what_a_command_without_lineage_closes_ends_with_the_restart() {
    let disabled = [("OPENLINEAGE_DISABLED", "true")];
    let tracked = killed();
    tracked.run(0, &["stop", "1"], &disabled);
    assert_eq!(tracked.receiver.events().len(), 5);
    tracked.run(0, &["recover"], &[]);
    assert_eq!(tracked.receiver.events().len(), 5, "nothing is to be recovered");
    tracked.launch(0, &[]);
    assert_snapshot!(after_kill(&tracked), @r#"
    ABORT #3 job.load parent=#1:job
    ABORT #1 job
    START #4 job
    START #5 job.load parent=#4:job root=#4:job
    RUNNING #5 job.load parent=#4:job root=#4:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    COMPLETE #5 job.load parent=#4:job root=#4:job
      <- file /in.csv 3 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 3 rows
    COMPLETE #4 job
    "#);
}

/// An execution that has ended by itself is not closed.
///
/// Spec: LIN-10
#[test]
fn runs_that_have_ended_do_not_end_again() {
    let tracked = Tracked::new(
        r#"<step id="only"><batchlet ref="Task"><properties><property name="fail" value="x"/></properties></batchlet></step>"#,
    );
    tracked.launch(1, &[]);
    tracked.launch(1, &[]);
    tracked.run(0, &["abandon", "2"], &[]);
    assert_eq!(tracked.receiver.events().len(), 8);
}

/// The run of a partitioned step ends, and its partitions have none.
///
/// Spec: LIN-10
#[test]
fn partitions_of_a_dead_process_end_with_their_step() {
    let step = LOAD.replace("</step>", r#"<partition instances="2"/></step>"#);
    let tracked = Tracked::new(&format!("{CREATE}{step}")).with_payments("in.csv", 1..=5);
    // The table is in RUNNING.
    kill(&tracked, 5);
    let before = tracked.receiver.events().len();
    tracked.run(0, &["abandon", "1"], &[]);
    assert_snapshot!(lines(&tracked.receiver.events()[before..], &tracked.path()), @r#"
    ABORT #1 job.load parent=#2:job
    ABORT #2 job
    "#);
}

/// A step in a partition of a flow has a separate run.
///
/// Spec: LIN-10
#[test]
fn steps_in_partitions_of_a_flow_end() {
    let tracked = Tracked::new(&format!(
        r#"{}<flow id="flow">{LOAD}<partition instances="1"/></flow>"#,
        CREATE.replace(r#"next="load""#, r#"next="flow""#)
    ))
    .with_payments("in.csv", 1..=5);
    kill(&tracked, 5);
    tracked.run(0, &["stop", "1"], &[]);
    assert_snapshot!(lines(&tracked.receiver.events()[3..], &tracked.path()), @r#"
    START #1 job.load parent=#2:job root=#2:job
    RUNNING #1 job.load parent=#2:job root=#2:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    ABORT #1 job.load parent=#2:job
    ABORT #2 job
    "#);
}

/// A dead execution that has the turn of its job is closed by the next one.
///
/// Spec: LIN-10, OBS-07
#[test]
fn the_next_execution_of_the_job_ends_the_runs_of_a_dead_one() {
    for concurrency in ["one", "queue"] {
        let property = format!(
            r#"<properties><property name="batch.job.concurrency" value="{concurrency}"/></properties>"#
        );
        let tracked = Tracked::new(&format!("{property}{CREATE}{LOAD}")).with_payments("in.csv", 1..=5);
        kill(&tracked, 5);
        fs::write(tracked.path().join("go"), "").unwrap();
        tracked.run(0, &["launch", "job", "run=2"], &[]);
        let ended = after_kill(&tracked);
        let has_ended = |line: &str| ended.lines().any(|other| other.starts_with(line));
        assert!(
            has_ended("FAIL #3 job.load parent=#1:job error=") && has_ended("FAIL #1 job error="),
            "{concurrency}\n{ended}"
        );
    }
}

/// Spec: LIN-10
#[test]
fn a_launch_that_is_rejected_after_crashes_ends_the_run() {
    let tracked = held();
    // The first makes progress, and the limit is one crash without.
    for _ in 0..3 {
        kill(&tracked, 2);
    }
    let error = tracked.run(2, &["launch", "job"], &[("BATCH_CRASH_LIMIT", "1")]);
    assert!(error.contains("died"), "{error}");
    let events = tracked.receiver.events();
    assert_snapshot!(lines(&events[events.len() - 2..], &tracked.path()), @r#"
    FAIL #1 job.load parent=#2:job error="the process that ran it died or lost its lease"
    FAIL #2 job error="the process that ran it died or lost its lease"
    "#);
}
