//! Tests of remote launches, with any dispatcher for the partitions of their jobs.

use crate::fleet::{Fleet, until};

const REMOTE: &[&str] = &["launch", "--remote", "fleet"];

/// Queues a launch, and returns its id.
fn launch(fleet: &Fleet, parameters: &[&str]) -> String {
    let printed = fleet.run(0, &[REMOTE, parameters].concat());
    let id = printed.lines().find(|line| line.parse::<i64>().is_ok());
    id.unwrap_or_else(|| panic!("{printed}")).to_owned()
}

/// Waits until a launch is listed with this text.
fn becomes(fleet: &Fleet, launch: &str, text: &str) {
    until(text, || {
        let listed = fleet.run(0, &["launches", launch]);
        listed.contains(text).then_some(())
    });
}

fn executions(fleet: &Fleet) -> i64 {
    fleet.number("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION")
}

/// A launch waits for a worker, has one id however often it is repeated, and runs once.
///
/// Spec: DISP-15
pub fn a_launch_waits_for_a_worker(fleet: &Fleet) {
    let id = launch(fleet, &[]);
    becomes(fleet, &id, "queued");
    assert_eq!(launch(fleet, &[]), id);
    let _idle = fleet.worker(&["--jobs", "0"]);
    let _other = fleet.worker(&["--queue", "other"]);
    assert_eq!(executions(fleet), 0);
    let _worker = fleet.worker(&[]);
    becomes(fleet, &id, "COMPLETED");
    fleet.is_exact(200);
    let again = fleet.run(10, REMOTE);
    assert!(again.contains("is complete"), "{again}");
}

/// Launches of one instance by several processes at once: it runs once.
///
/// Spec: DISP-15, OP-36
pub fn racing_launches_run_once(fleet: &Fleet) {
    let _workers = [fleet.worker(&[]), fleet.worker(&[])];
    let mut launches: Vec<_> = (0..4).map(|_| fleet.start(REMOTE)).collect();
    for launch in &mut launches {
        launch.end();
    }
    until("all launches have ended", || {
        let listed = fleet.run(0, &["launches", "--json"]);
        let ended = listed.matches("\"COMPLETED\"").count();
        (ended > 0 && ended == listed.matches("\"status\"").count()).then_some(())
    });
    assert_eq!(executions(fleet), 1);
    fleet.is_exact(200);
}

/// `kill -9` of the worker that runs a job and its partitions: another one resumes it.
///
/// Spec: DISP-15, DISP-02
pub fn a_killed_worker_loses_no_launch(fleet: &Fleet) {
    fleet.on_other_hosts();
    let mut first = fleet.worker(&[]);
    fleet.hold();
    let id = launch(fleet, &["holds=2"]);
    assert_eq!(fleet.is_held(), first.id());
    first.kill();
    let _second = fleet.worker(&[]);
    fleet.release();
    becomes(fleet, &id, "COMPLETED");
    fleet.is_exact(200);
    assert_eq!(executions(fleet), 2);
}

/// SIGTERM: the job stops at its checkpoints, and another worker resumes it.
///
/// Spec: DISP-15, DISP-11
pub fn a_drained_worker_hands_its_launches_over(fleet: &Fleet) {
    let mut first = fleet.worker(&["--slots", "4"]);
    let id = launch(fleet, &["items=5000", "-pace=1"]);
    until("all partitions have committed", || {
        (fleet.number("SELECT COUNT(DISTINCT part) AS n FROM processed") == 4).then_some(())
    });
    first.signal("TERM");
    first.ends(0);
    let committed = fleet.number("SELECT COUNT(*) AS n FROM processed");
    assert!((1..20_000).contains(&committed), "{committed}");
    becomes(fleet, &id, "queued");
    let _second = fleet.worker(&["--slots", "4"]);
    becomes(fleet, &id, "COMPLETED");
    fleet.is_exact(20_000);
}

/// A worker that takes a launch while the job still stops in the drained one waits for that, and then resumes the job.
///
/// Spec: DISP-15, DISP-11
pub fn a_launch_waits_until_a_drained_worker_has_stopped_it(fleet: &Fleet) {
    let mut first = fleet.worker(&["--slots", "1"]);
    fleet.hold();
    let id = launch(fleet, &["parts=1", "holds=0"]);
    assert_eq!(fleet.is_held(), first.id());
    let _second = fleet.worker(&[]);
    first.signal("TERM");
    becomes(fleet, &id, "is running");
    fleet.release();
    first.ends(0);
    becomes(fleet, &id, "COMPLETED");
    fleet.is_exact(50);
    assert_eq!(executions(fleet), 2);
}

/// A launch is stopped by its id, before and after a worker has taken it.
///
/// Spec: DISP-15, DISP-06
pub fn launches_are_stopped(fleet: &Fleet) {
    let id = launch(fleet, &["items=5000", "-pace=1"]);
    fleet.run(0, &["stop", &id]);
    becomes(fleet, &id, "withdrawn");
    let _worker = fleet.worker(&["--slots", "4"]);
    let again = launch(fleet, &["items=5000", "-pace=1"]);
    assert_ne!(again, id);
    until("a partition has committed", || {
        (fleet.number("SELECT COUNT(*) AS n FROM processed") > 0).then_some(())
    });
    fleet.start(&["stop", &again]).end();
    becomes(fleet, &again, "STOPPED");
    assert_eq!(executions(fleet), 1);
    let ended = fleet.run(2, &["stop", &id]);
    assert!(ended.contains("has ended"), "{ended}");
}

/// With --wait a launch ends as its execution does, or when it is withdrawn. A job is stopped by its name.
///
/// Spec: DISP-15, CLI-04, CLI-06
pub fn a_launch_is_awaited(fleet: &Fleet) {
    let waiting = |parameters: &[&str]| fleet.start(&[REMOTE, &["--wait"], parameters].concat());
    let mut withdrawn = waiting(&["items=4"]);
    withdrawn.says("queued for workers");
    let stopped = fleet.run(0, &["stop", "fleet"]);
    assert!(stopped.contains("has stopped"), "{stopped}");
    assert!(withdrawn.ends(3).contains("was stopped before a worker ran it"));
    let _worker = fleet.worker(&[]);
    let ended = waiting(&[]).ends(0);
    assert!(ended.contains("COMPLETED"), "{ended}");
    fleet.is_exact(200);
    waiting(&[]).ends(10);
    waiting(&["--complete-ok"]).ends(0);
}

/// A worker with other Job XML leaves a launch to workers that have the Job XML of the process that launched it.
///
/// Spec: DISP-15, DISP-10
pub fn launches_of_another_version_wait(fleet: &Fleet) {
    let other = fleet.other_jobs();
    let _newer = fleet.worker_in(&other, &[]);
    let id = launch(fleet, &[]);
    becomes(fleet, &id, "has the fingerprint");
    assert_eq!(executions(fleet), 0);
    let _worker = fleet.worker(&[]);
    becomes(fleet, &id, "COMPLETED");
    fleet.is_exact(200);
}
