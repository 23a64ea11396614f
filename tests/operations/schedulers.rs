//! What a scheduler relies on: exit codes that tell why nothing was started, launches that wait, ids at once.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_tests::operated::{self, Operated};
use batch_tests::sqlite;
use batch_tests::stage::{Stage, say};
use diesel::connection::SimpleConnection;
use serde_json::Value;
use tempfile::TempDir;

use crate::operating::{PROGRAM, ends};

/// A job that ends when there is a file of the name `number`.
fn job(id: &str, concurrency: &str) -> String {
    format!(
        r#"<job id="{id}"><properties><property name="batch.job.concurrency" value="{concurrency}"/></properties>
             <step id="one"><batchlet ref="TurnTaker">
               <properties><property name="number" value="${{number}}"/></properties>
             </batchlet></step></job>"#
    )
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("any.xml"), job("any", "any")).unwrap();
    fs::write(folder.path().join("alone.xml"), job("alone", "one")).unwrap();
    folder
}

fn end(folder: &Path, number: &str) {
    fs::write(folder.join(number), "").unwrap();
}

/// Launches a job, and returns when its step runs.
fn running(folder: &Path, job: &str, number: &str) -> Operated {
    let number = format!("number={number}");
    let mut process = Operated::run(PROGRAM, folder, &["launch", job, &number]);
    process.until("step one");
    process
}

/// Spec: CLI-02, CLI-03
#[test]
fn each_reason_to_start_nothing_has_its_exit_code() {
    let folder = folder();
    let here = folder.path();
    let mut first = running(here, "alone", "a");
    let (_, err) = ends(11, here, &["launch", "alone", "number=a"]);
    assert!(err.contains("is running: execution 1"), "{err}");
    ends(11, here, &["restart", "1"]);
    ends(11, here, &["launch", "alone", "number=a", "--complete-ok"]);
    let (_, err) = ends(75, here, &["launch", "alone", "number=b"]);
    assert!(err.contains("execution 1 has not ended"), "{err}");
    ends(75, here, &["start", "alone", "number=b"]);
    end(here, "a");
    assert_eq!(first.ends().code(), Some(0));
    for command in [&["launch", "alone", "number=a"][..], &["restart", "1"]] {
        let (_, err) = ends(10, here, command);
        assert!(err.contains("is complete (execution 1"), "{err}");
    }
    let (out, err) = ends(0, here, &["launch", "alone", "number=a", "--complete-ok"]);
    assert!(out.is_empty() && err.starts_with("nothing to do: "), "{out}{err}");
    // A mistake is none of these.
    ends(
        2,
        here,
        &["launch", "alone", "nmuber=a", "--complete-ok", "--wait"],
    );
    ends(2, here, &["launch", "unknown", "--wait"]);
    ends(2, here, &["restart", "7"]);
}

/// Spec: CLI-04
#[test]
fn a_launch_waits_until_its_instance_has_ended() {
    let folder = folder();
    let here = folder.path();
    let mut first = running(here, "any", "a");
    let mut waits = Operated::run(PROGRAM, here, &["launch", "any", "number=a", "--wait"]);
    let mut content = Operated::run(
        PROGRAM,
        here,
        &["launch", "any", "number=a", "--wait", "--complete-ok"],
    );
    let mut ended = Operated::run(PROGRAM, here, &["launch", "any", "number=a", "--wait"]);
    for process in [&mut waits, &mut content, &mut ended] {
        process.until("waiting for execution 1: this instance of job `any` is running");
    }
    ended.signal("TERM");
    ended.until("not started: the wait was interrupted");
    assert_eq!(ended.ends().code(), Some(75));
    end(here, "a");
    assert_eq!(first.ends().code(), Some(0));
    waits.until("is complete");
    assert_eq!(waits.ends().code(), Some(10));
    assert_eq!(content.ends().code(), Some(0));
}

/// Another process has locked the file of the repository: the command says what it waits for.
///
/// Spec: CLI-12
#[test]
fn a_launch_says_that_it_waits_for_the_repository() {
    let folder = folder();
    let here = folder.path();
    end(here, "a");
    ends(0, here, &["launch", "any", "number=a"]);
    let mut other = sqlite::open(&here.join("batch.db"));
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    end(here, "b");
    let mut waits = Operated::run(PROGRAM, here, &["launch", "any", "number=b"]);
    waits.until("waiting for the repository `sqlite://batch.db`, which another process may have locked");
    other.batch_execute("ROLLBACK").unwrap();
    assert_eq!(waits.ends().code(), Some(0));
}

/// The process that runs the instance dies: the one that waits takes it over.
///
/// Spec: CLI-04, OP-36
#[test]
fn a_launch_that_waits_takes_a_dead_instance_over() {
    let folder = folder();
    let here = folder.path();
    let mut first = running(here, "any", "a");
    let mut waits = Operated::run(PROGRAM, here, &["launch", "any", "number=a", "--wait"]);
    waits.until("waiting for execution 1");
    first.signal("KILL");
    first.ends();
    waits.until("step one");
    end(here, "a");
    assert_eq!(waits.ends().code(), Some(0));
    let (out, _) = ends(0, here, &["show", "--last"]);
    assert!(out.contains("execution    2\n"), "{out}");
}

/// Spec: CLI-04, TURN-01
#[test]
fn a_launch_waits_for_the_other_execution_of_its_job() {
    let folder = folder();
    let here = folder.path();
    let mut first = running(here, "alone", "a");
    let mut waits = Operated::run(PROGRAM, here, &["launch", "alone", "number=b", "--wait"]);
    waits.until("waiting for execution 1");
    end(here, "a");
    assert_eq!(first.ends().code(), Some(0));
    waits.until("step one");
    end(here, "b");
    assert_eq!(waits.ends().code(), Some(0));
}

/// The first line is there while the job runs; the second has the result.
///
/// Spec: CLI-05
#[test]
fn a_launch_prints_its_ids_at_once() {
    let folder = folder();
    let here = folder.path();
    let launch = ["launch", "any", "number=a", "--json"];
    let mut child = operated::command(PROGRAM, here, &launch)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    assert_eq!(line, "{\"execution\":1,\"instance\":1,\"job\":\"any\"}\n");
    end(here, "a");
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let is_result = |text: &str| {
        let result: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (&result["execution"], &result["status"]),
            (&1.into(), &"COMPLETED".into())
        );
        assert_eq!(result["steps"][0]["step"], "one", "{result}");
        assert_eq!(text.lines().count(), 1);
    };
    is_result(&rest);
    // The same for an instance that is complete.
    let again = [&launch[..], &["--complete-ok"]].concat();
    let (out, _) = ends(0, here, &again);
    let (first, result) = out.split_once('\n').unwrap();
    assert_eq!(format!("{first}\n"), line);
    is_result(result);
}

/// Spec: CLI-06
#[test]
fn executions_are_stopped_by_the_name_of_their_job() {
    let folder = folder();
    let here = folder.path();
    let (_, err) = ends(2, here, &["stop", "any"]);
    assert!(err.contains("does not exist"), "{err}");
    let mut other = running(here, "alone", "x");
    let mut both = [running(here, "any", "a"), running(here, "any", "b")];
    ends(0, here, &["launch", "--remote", "any", "number=c"]);
    let (out, _) = ends(0, here, &["stop", "any"]);
    assert_eq!(
        out,
        "launch 4 has stopped\nexecution 2 has stopped\nexecution 3 has stopped\n"
    );
    for process in &mut both {
        assert_eq!(process.ends().code(), Some(3));
    }
    let (_, err) = ends(2, here, &["stop", "any"]);
    assert!(err.contains("job `any` has no running execution"), "{err}");
    let (_, err) = ends(2, here, &["stop", "nay"]);
    assert!(err.contains("unknown job `nay`"), "{err}");
    end(here, "x");
    assert_eq!(other.ends().code(), Some(0), "another job is not stopped");
}

/// Spec: CLI-06
#[test]
fn the_latest_execution_is_shown() {
    let folder = folder();
    let here = folder.path();
    for (job, number) in [("any", "a"), ("alone", "b")] {
        end(here, number);
        ends(0, here, &["launch", job, &format!("number={number}")]);
    }
    let shown = |arguments: &[&str]| ends(0, here, arguments).0;
    assert!(shown(&["show", "--last"]).contains("\nexecution    2\n"));
    assert!(shown(&["show", "--last", "any"]).contains("\nexecution    1\n"));
    let json: Value = serde_json::from_str(&shown(&["show", "--last", "--json"])).unwrap();
    assert_eq!(json["job"], "alone");
    ends(0, here, &["show", "any", "--last", "--report", "any.md"]);
    assert!(here.join("any.md").exists());
    let (_, err) = ends(2, here, &["show", "any"]);
    assert!(
        err.contains("`show --last any` shows the latest execution"),
        "{err}"
    );
    let (_, err) = ends(2, here, &["show", "--last", "nay"]);
    assert!(err.contains("unknown job `nay`"), "{err}");
    fs::write(here.join("new.xml"), job("new", "any")).unwrap();
    let (_, err) = ends(2, here, &["show", "--last", "new"]);
    assert_eq!(err, "error: job `new` has no execution\n");
    ends(2, here, &["show"]);
}

/// Reports that it runs, and waits until it is stopped; a stubborn one waits for ever.
#[derive(BatchArtifact)]
struct Runs {
    #[batch_property]
    log: String,
    #[batch_property(name = "stubborn", value = "false")]
    is_stubborn: bool,
    stopped: std::sync::Mutex<Option<mpsc::Sender<()>>>,
}

#[batchlet("RunsUntilStopped")]
impl Runs {
    #[process]
    fn run(&self) -> String {
        let (stop, stopped) = mpsc::channel();
        *self.stopped.lock().unwrap() = Some(stop);
        say(&self.log, "runs");
        let _ = stopped.recv();
        "STOPPED IT".into()
    }
    #[cancel]
    fn cancel(&self) {
        say(&self.log, "cancelled");
        if !self.is_stubborn {
            self.stopped.lock().unwrap().take();
        }
    }
}

const RUNS: &str = r#"<job id="runs"><step id="one"><batchlet ref="RunsUntilStopped">
    <properties><property name="stubborn" value="${stubborn}"/></properties></batchlet></step></job>"#;

/// Waits until as many executions run.
fn until_running(stage: &Stage, count: usize) {
    let mut running = 0;
    while running < count {
        running += stage.log().iter().filter(|line| *line == "runs").count();
        std::thread::yield_now();
    }
}

/// Spec: CLI-07
#[test]
fn a_program_stops_its_jobs_before_it_ends() {
    let stage = Stage::new(RUNS);
    let runtime = stage.another_runtime();
    let operator = runtime.job_operator();
    assert!(runtime.shutdown(Duration::ZERO).is_empty(), "nothing runs");
    let started = [(); 2].map(|()| operator.start("runs", [("stubborn", "false")]).unwrap());
    until_running(&stage, 2);
    assert!(runtime.shutdown(Duration::from_secs(600)).is_empty());
    for execution in started {
        let ended = operator.job_execution(execution).unwrap().unwrap();
        assert_eq!(ended.status, BatchStatus::Stopped);
    }
    // It can be resumed, also by the same runtime.
    let again = operator.restart(started[0], ()).unwrap();
    until_running(&stage, 1);
    assert!(runtime.shutdown(Duration::from_secs(600)).is_empty());
    assert_eq!(
        operator.job_execution(again).unwrap().unwrap().status,
        BatchStatus::Stopped
    );
}

/// Spec: CLI-07
#[test]
fn a_shutdown_ends_at_its_limit() {
    let stage = Stage::new(RUNS);
    let runtime = stage.another_runtime();
    let operator = runtime.job_operator();
    let stubborn = operator.start("runs", [("stubborn", "true")]).unwrap();
    let willing = operator.start("runs", [("stubborn", "false")]).unwrap();
    until_running(&stage, 2);
    assert_eq!(runtime.shutdown(Duration::from_millis(300)), [stubborn]);
    let status = |execution| operator.job_execution(execution).unwrap().unwrap().status;
    assert_eq!(
        (status(stubborn), status(willing)),
        (BatchStatus::Stopping, BatchStatus::Stopped)
    );
}
