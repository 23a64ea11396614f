//! The commands `worker` and `workers`, and the settings of dispatchers.

use std::fs;
use std::net::TcpStream;

use batch_runtime::BatchRuntime;
use batch_runtime::worker::WorkerError;
use batch_tests::database::{Database, Place};
use batch_tests::fleet::{Fleet, Process, until};
use batch_tests::http::get;
use serde_json::Value;

fn fleet(dispatch: &str) -> Fleet {
    let place = |folder: &std::path::Path| Place::new(Database::Sqlite, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, dispatch)
}

/// Returns the status codes of `/health` and `/health/live`, and the body of both.
fn health(address: &str) -> ([u16; 2], String) {
    // The health may change between the two requests.
    until("the same health twice", || {
        let [ready, live] = ["/health", "/health/live"].map(|path| probe(address, path));
        (ready.1 == live.1).then_some(([ready.0, live.0], ready.1))
    })
}

fn probe(address: &str, path: &str) -> (u16, String) {
    let (status, body) = get(address, &format!("GET {path}"));
    let code = status.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.trim().to_owned())
}

/// Returns the address of a worker's health endpoint.
fn address_of(worker: &mut Process) -> String {
    let log = worker.log();
    let (_, at) = log.split_once("health at http://").unwrap();
    at.split('/').next().unwrap().to_owned()
}

/// Spec: DISP-11, DISP-13
#[test]
fn workers_are_listed_and_report_their_health() {
    let fleet = fleet("repository");
    assert!(fleet.run(0, &["workers"]).contains("no worker is registered"));
    fleet.hold();
    let mut worker = fleet.worker(&["--queue", "printers", "--slots", "3", "--metrics-port", "0"]);
    let address = address_of(&mut worker);
    let up = ([200, 200], r#"{"status":"up"}"#.to_owned());
    assert_eq!(health(&address), up);

    let mut job = fleet.start(&[
        "launch",
        "fleet",
        "parts=1",
        "holds=0",
        "batch.dispatch.queue=printers",
    ]);
    fleet.is_held();
    let listed: Value = serde_json::from_str(&fleet.run(0, &["workers", "--json"])).unwrap();
    let [listed] = listed.as_array().unwrap().as_slice() else {
        panic!("{listed}");
    };
    assert_eq!(
        (&listed["queue"], &listed["slots"]),
        (&"printers".into(), &3.into())
    );
    assert_eq!(listed["status"], "ready");
    assert_eq!(listed["partitions"][0]["execution"], 1);

    worker.signal("TERM");
    worker.says("draining");
    let draining = ([503, 200], r#"{"status":"draining"}"#.to_owned());
    until("its health is that it drains", || {
        (health(&address) == draining).then_some(())
    });
    until("it is shown as draining", || {
        fleet.run(0, &["workers"]).contains("draining").then_some(())
    });
    fleet.release();
    worker.ends(0);
    assert!(fleet.run(0, &["workers"]).contains("no worker is registered"));
    let _next = fleet.worker(&["--queue", "printers"]);
    job.ends(0);
    fleet.is_exact(50);
}

/// A partition that does not stop for a lease time is reported, so that the process can be replaced. Clients that send nothing delay no
/// probe.
///
/// Spec: DISP-18
#[test]
fn a_partition_that_does_not_stop_is_reported() {
    let fleet = fleet("repository").variable("BATCH_LEASE_TIME", "1");
    fleet.hold();
    let mut worker = fleet.worker(&["--metrics-port", "0"]);
    let address = address_of(&mut worker);
    let _silent: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut job = fleet.start(&["launch", "fleet", "parts=1", "holds=0"]);
    fleet.is_held();
    let up = ([200, 200], r#"{"status":"up"}"#.to_owned());
    assert_eq!(health(&address), up);
    fleet.run(1, &["stop", "1"]);
    let reason = until("its health is that it is stuck", || {
        let (codes, body) = health(&address);
        (codes == [503, 503]).then_some(body)
    });
    assert!(
        reason.starts_with(r#"{"reason":"step execution 2 was requested to stop "#)
            && reason.contains(r#""status":"stuck""#),
        "{reason}"
    );
    fleet.release();
    job.ends(3);
    until("its health is that it is up", || {
        (health(&address) == up).then_some(())
    });
}

/// A worker without slots would wait for ever.
///
/// Spec: DISP-13
#[test]
fn a_worker_without_slots_is_rejected() {
    let fleet = fleet("repository");
    let said = fleet.run(2, &["worker", "--slots", "0"]);
    assert!(
        said.contains("a worker without slots would run no partition; expected a whole number, at least 1"),
        "{said}"
    );
    let runtime = BatchRuntime::builder()
        .repository(fleet.place.url())
        .build()
        .unwrap();
    let error = runtime.worker().slots(0).start().unwrap_err();
    assert!(matches!(error, WorkerError::NoSlots), "{error}");
    assert!(error.to_string().contains("set at least 1"), "{error}");
    assert!(runtime.job_operator().workers().unwrap().is_empty());
}

/// Two workers of one runtime would have one name.
///
/// Spec: DISP-13
#[test]
fn a_runtime_has_one_worker_at_a_time() {
    let fleet = fleet("repository");
    let runtime = BatchRuntime::builder()
        .repository(fleet.place.url())
        .build()
        .unwrap();
    let night = runtime.worker().queue("night").slots(1);
    assert!(
        format!("{night:?}").contains(r#"queue: "night", slots: 1"#),
        "{night:?}"
    );
    for _ in 0..2 {
        let worker = runtime.worker().slots(1).start().unwrap();
        let error = runtime.worker().slots(1).start().unwrap_err();
        assert!(matches!(error, WorkerError::AlreadyStarted), "{error}");
        worker.drain();
        worker.wait().unwrap();
    }
}

/// A worker that died stays in the list. On its host it is shown as dead at once, elsewhere when its registration has expired.
///
/// Spec: DISP-13
#[test]
fn a_dead_worker_is_shown_as_dead() {
    let patient = fleet("repository").variable("BATCH_LEASE_TIME", "600");
    let mut worker = patient.worker(&[]);
    assert!(patient.run(0, &["workers"]).contains("ready"));
    worker.kill();
    for _ in 0..2 {
        assert!(patient.run(0, &["workers"]).contains("dead"));
    }
    let of_other_host = fleet("repository");
    let mut worker = of_other_host.worker(&[]);
    let moved = "UPDATE BATCH_WORKER SET WORKER_NAME = 'elsewhere/1/0123456789abcdef/locked'";
    worker.kill();
    of_other_host.connect().execute(moved).unwrap();
    until("its registration expires", || {
        of_other_host.run(0, &["workers"]).contains("dead").then_some(())
    });
}

/// Spec: DISP-12
#[test]
fn an_unknown_dispatcher_is_rejected_before_anything_starts() {
    let wrong = fleet("repositry");
    let said = wrong.run(2, &["launch", "fleet"]);
    assert!(
        said.contains("unknown dispatcher `repositry`; did you mean `repository`?"),
        "{said}"
    );
    let fleet = fleet("local");
    let said = fleet.run(2, &["launch", "fleet", "batch.dispatch=nats"]);
    let expected = "`batch.dispatch` names the dispatcher `nats`; this runtime has local, repository";
    assert!(said.contains(expected), "{said}");
    assert_eq!(fleet.number("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION"), 0);
}

/// A step may run on workers although the program does not, and the other way round.
///
/// Spec: DISP-12
#[test]
fn a_property_chooses_the_dispatcher_of_a_step() {
    let fleet = fleet("local");
    fs::write(fleet.path().join("held"), "").unwrap();
    let worker = fleet.worker(&[]);
    let mut remote = fleet.start(&["launch", "fleet", "holds=0", "batch.dispatch=repository"]);
    assert_eq!(fleet.is_held(), worker.id());
    fleet.release();
    remote.ends(0);
    drop(worker);
    fleet.run(0, &["launch", "fleet", "run=1"]);
    fleet.is_exact(400);
}
