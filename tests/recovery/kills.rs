//! Real processes that are killed.

use batch_tests::kill::{FLIGHTS, Folder, Killer};
use batch_tests::random::Random;
use batch_tests::{flights, process, slow};

/// Shortens the rest of a load that began with one commit per flight.
const QUICK: &str = "commit.interval=100";

/// Kills at random moments: nothing is lost or doubled, and every counter is right at every commit.
///
/// Spec: DOM-26, DOM-27, CHUNK-LOOP-12, CHUNK-LOOP-16, OP-35, OP-36, REPO-44, REPO-62
/// Spec: REPO-55, REPO-56, REPO-57, REPO-58, REPO-59, REPO-63
#[test]
fn kills_lose_nothing_and_double_nothing() {
    let kills = slow::times(14, 60);
    let folder = Folder::new();
    let expected = flights::expected_rows();
    let instances = Killer::new(&folder, FLIGHTS, Random::new("kill loop")).kill(kills);
    assert_eq!(folder.instances(), instances);
    for instance in 1..=instances {
        flights::verify(&folder.database(), instance, &expected)
            .unwrap_or_else(|problem| panic!("{problem}"));
    }
    // Kills must have struck in the middle of the load, between two commits.
    let in_the_load = folder.count(
        "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE STEP_NAME = 'load-flights' AND EXIT_CODE = 'CRASHED'
         AND COMMIT_COUNT > 0 AND STATUS = 'FAILED' AND END_TIME IS NOT NULL",
    );
    println!("{kills} kills in {instances} instances, {in_the_load} in the middle of the load");
    assert!(
        in_the_load >= i64::from(kills / 8),
        "only {in_the_load} of {kills} kills struck in the middle of the load"
    );
    assert_eq!(
        folder.count("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION WHERE END_TIME IS NULL"),
        0
    );
}

/// Two processes with the same launch: one runs, the other reports that; the same for restarts.
///
/// Spec: OP-34, OP-36, REPO-16, RESTART-01, RESTART-07
#[test]
fn one_of_two_processes_runs_the_instance() {
    let folder = Folder::new();
    // Enough commits that the first still runs when the second starts.
    let launch = ["launch", "flights", "commit.interval=1"];
    let mut first = process::spawn_until(
        process::command("flights", folder.path(), &launch),
        "step load-flights",
    );
    let (_, refused) = process::run_expecting(11, "flights", folder.path(), &launch);
    assert!(
        refused.contains("this instance of job `flights` is running: execution 1"),
        "{refused}"
    );
    first.kill().unwrap();
    first.wait().unwrap();

    let restart = ["restart", "1", "commit.interval=1"];
    let mut second = process::spawn_until(
        process::command("flights", folder.path(), &restart),
        "step load-flights",
    );
    let (_, refused) = process::run_expecting(11, "flights", folder.path(), &restart);
    assert!(
        refused.contains("cannot restart job execution 1: execution 2 is running"),
        "{refused}"
    );
    second.kill().unwrap();
    second.wait().unwrap();
    process::run_expecting(0, "flights", folder.path(), &["restart", "2", QUICK]);

    let (_, refused) = process::run_expecting(10, "flights", folder.path(), &launch);
    assert!(
        refused.contains("is complete (execution 3 ended COMPLETED)"),
        "{refused}"
    );
    flights::verify(&folder.database(), 1, &flights::expected_rows()).unwrap();
}

/// `stop` from another process: STOPPED at a checkpoint, and a restart resumes from there.
///
/// Spec: DOM-02, OP-17, CHUNK-LOOP-15, REPO-17, RESTART-01
#[test]
fn another_process_stops_the_job() {
    let folder = Folder::new();
    let launch = ["launch", "flights", "commit.interval=1"];
    let mut child = process::spawn_until(
        process::command("flights", folder.path(), &launch),
        "step load-flights",
    );
    let (out, _) = process::run_expecting(0, "flights", folder.path(), &["stop", "1"]);
    assert!(out.contains("execution 1 has stopped"), "{out}");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let stopped =
        "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE STATUS = 'STOPPED' AND READ_COUNT < 20000";
    assert_eq!(folder.count(stopped), 1);
    process::run_expecting(0, "flights", folder.path(), &["restart", "1", QUICK]);
    flights::verify(&folder.database(), 1, &flights::expected_rows()).unwrap();
    process::run_expecting(2, "flights", folder.path(), &["stop", "1"]);
}

/// `stop` of an execution whose process was killed closes it as STOPPED.
///
/// Spec: OP-17, OP-35
#[test]
fn stop_closes_an_execution_of_a_dead_process() {
    let folder = Folder::new();
    let launch = ["launch", "flights", "commit.interval=1"];
    let mut child = process::spawn_until(
        process::command("flights", folder.path(), &launch),
        "step load-flights",
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let (out, _) = process::run_expecting(0, "flights", folder.path(), &["list"]);
    assert!(out.contains("STARTED (dead)"), "{out}");
    let (out, _) = process::run_expecting(0, "flights", folder.path(), &["show", "1"]);
    assert!(out.contains("STARTED, but its process is dead"), "{out}");
    let (out, _) = process::run_expecting(0, "flights", folder.path(), &["stop", "1"]);
    assert!(out.contains("it was stopped after its process had died"), "{out}");
    let (out, _) = process::run_expecting(0, "flights", folder.path(), &["show", "1"]);
    assert!(out.contains("status       STOPPED"), "{out}");
    process::run_expecting(0, "flights", folder.path(), &["restart", "1", QUICK]);
    flights::verify(&folder.database(), 1, &flights::expected_rows()).unwrap();
}

/// A full disk in the middle of the load: FAILED with the cause; when space is available, a launch resumes.
///
/// Spec: CHUNK-LOOP-13, STATUS-27, REPO-60
#[test]
#[cfg(unix)]
fn a_full_disk_fails_the_step_and_loses_nothing() {
    let folder = Folder::new();
    // Limits files to 1000 blocks of 512 bytes; the signal that would end the process is ignored.
    let limited = "trap '' XFSZ; ulimit -f 2000; exec \"$0\" launch flights commit.interval=50";
    let output = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(process::example("flights"))
        .env(process::OF_CARGO.0, process::OF_CARGO.1)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let (out, err) = (process::text(&output.stdout), process::text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}\n{err}");
    assert!(
        err.contains("disk I/O error") || err.contains("disk is full"),
        "{out}\n{err}"
    );
    let failed =
        "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE STEP_NAME = 'load-flights' AND COMMIT_COUNT > 0
                  AND STATUS = 'FAILED' AND ROLLBACK_COUNT = 1 AND EXIT_MESSAGE LIKE '%disk%'";
    assert_eq!(folder.count(failed), 1, "{out}\n{err}");
    process::run_expecting(
        0,
        "flights",
        folder.path(),
        &["launch", "flights", "commit.interval=50"],
    );
    flights::verify(&folder.database(), 1, &flights::expected_rows()).unwrap();
}
