//! The dispatchers that need no server: processes on one host that share a SQLite file.

use std::sync::Arc;
use std::time::Duration;

use batch_runtime::partition::{
    DispatchError, PartitionChannel, PartitionDispatcher, PartitionSource, PartitionTransport,
};
use batch_runtime::time::{Clock, Timestamp};
use batch_runtime::{BatchRuntime, JobExecutionId};
use batch_tests::database::{Database, Place};
use batch_tests::dispatcher_tests;
use batch_tests::fleet::Fleet;

fn fleet() -> Fleet {
    let place = |folder: &std::path::Path| Place::new(Database::Sqlite, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository")
}

dispatcher_tests!(repository, fleet());

fn executions(fleet: &Fleet) -> i64 {
    fleet.number("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION")
}

/// Spec: DISP-16
#[test]
fn a_misspelt_queue_is_refused() {
    let fleet = fleet();
    let _worker = fleet.worker(&["--queue", "printers"]);
    for arguments in [
        &["launch", "--remote", "--queue", "prnters", "fleet"][..],
        &["launch", "fleet", "-batch.dispatch.queue=prnters"],
    ] {
        let refused = fleet.run(2, arguments);
        assert!(refused.contains("did you mean `printers`?"), "{refused}");
    }
    let refused = fleet.run(2, &["worker", "--queue", ""]);
    assert!(refused.contains("1 to 100 characters"), "{refused}");
    assert_eq!(executions(&fleet), 0);
}

/// Locks of a SQLite file hold on one host only.
///
/// Spec: DISP-16
#[test]
fn a_sqlite_file_is_for_one_host() {
    let fleet = fleet();
    let rejected = || {
        for arguments in [
            &["worker"][..],
            &["launch", "fleet"],
            &["launch", "--remote", "fleet"],
        ] {
            let rejected = fleet.run(2, arguments);
            assert!(rejected.contains("use PostgreSQL or MySQL"), "{rejected}");
            assert!(rejected.contains("elsewhere/7/a/locked"), "{rejected}");
        }
    };
    let elsewhere = "INSERT INTO BATCH_WORKER VALUES ('elsewhere/7/a/locked', 'default', 1, '1', 'READY', 0, 9000000000000)";
    fleet.connect().execute(elsewhere).unwrap();
    rejected();
    // A coordinator.
    let elsewhere = "INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES (77, 77, 'elsewhere/7/a/locked', 1, 9000000000000, 0, 0)";
    fleet.connect().execute("DELETE FROM BATCH_WORKER").unwrap();
    fleet.connect().execute(elsewhere).unwrap();
    rejected();
    assert_eq!(executions(&fleet), 0);
}

/// A transport that other hosts reach.
struct Network;

impl PartitionDispatcher for Network {
    fn open(&self, _: JobExecutionId, _: &str) -> Result<Box<dyn PartitionChannel>, DispatchError> {
        Err(DispatchError::new("not reached"))
    }
}

impl PartitionTransport for Network {
    fn connect_worker(&self, _: &str) -> Result<Box<dyn PartitionSource>, DispatchError> {
        Err(DispatchError::new("not reached"))
    }
    fn connects_hosts(&self) -> bool {
        true
    }
}

/// Spec: DISP-16
#[test]
fn a_transport_between_hosts_needs_a_database_server() {
    let builder = BatchRuntime::builder().repository("sqlite://:memory:");
    let refused = builder.partition_transport("network", Network).build();
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("`network` connects hosts"), "{refused}");
}

/// The clock of the operating system, and how far it is off.
struct Wrong(i64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.unwrap_or(Duration::ZERO).as_millis();
        Timestamp(i64::try_from(now).unwrap_or(0) + self.0)
    }
}

/// Spec: DISP-16
#[test]
fn a_wrong_clock_is_refused() {
    let fleet = fleet();
    for (off, expected) in [
        (60_000, "60.0 s ahead of"),
        (-60_000, "60.0 s behind"),
        (1_000, ""),
    ] {
        let runtime = BatchRuntime::builder()
            .repository(fleet.place.url())
            .clock(Arc::new(Wrong(off)))
            .build()
            .unwrap();
        let started = runtime.worker().start();
        match started {
            Ok(worker) => {
                assert_eq!(expected, "");
                worker.drain();
                worker.wait().unwrap();
            }
            Err(error) => {
                let error = error.to_string();
                assert!(!expected.is_empty() && error.contains(expected), "{error}");
            }
        }
    }
}
