//! The dispatcher without a broker: processes that share a database server.

use batch_tests::database::{Database, Place};
use batch_tests::fleet::Fleet;
use batch_tests::{dispatcher_tests, dispatching, slow};

dispatcher_tests!(postgres, {
    let place = |folder: &std::path::Path| Place::new(Database::Postgres, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository")
});

dispatcher_tests!(mariadb, {
    let place = |folder: &std::path::Path| Place::new(Database::Mariadb, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository")
});

/// Without a lock file, the process of a worker shows on its host that it is dead, long before its registration expires.
///
/// Spec: DISP-13
#[test]
#[cfg(target_os = "linux")]
fn a_dead_worker_of_this_host_is_shown_as_dead() {
    for database in [Database::Postgres, Database::Mariadb] {
        let place = |folder: &std::path::Path| Place::new(database, folder);
        let fleet = Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository");
        let fleet = fleet.variable("BATCH_LEASE_TIME", "600");
        let mut doomed = fleet.worker(&[]);
        let _other = fleet.worker(&["--queue", "printers"]);
        doomed.kill();
        let listed = fleet.run(0, &["workers"]);
        let status = |queue: &str| {
            let line = listed.lines().find(|line| line.contains(queue)).unwrap();
            line.split_whitespace().nth(4).unwrap().to_owned()
        };
        assert_eq!(
            (status("default"), status("printers")),
            ("dead".to_owned(), "ready".to_owned()),
            "{listed}"
        );
    }
}

/// Eight workers and a coordinator are killed and frozen at random: 500 faults in the slow tier.
///
/// Spec: DISP-02, DISP-03, DISP-09
#[test]
fn chaos_on_a_repository_loses_and_doubles_nothing() {
    let place = |folder: &std::path::Path| Place::new(Database::Postgres, folder);
    let fleet = Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository");
    let fleet = fleet.variable("BATCH_CRASH_LIMIT", "0");
    dispatching::chaos(&fleet, slow::times(12, 500), |_| {});
}

/// Spec: DISP-01
#[test]
fn the_check_finds_lost_and_doubled_records() {
    let place = |folder: &std::path::Path| Place::new(Database::Postgres, folder);
    let fleet = Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository");
    dispatching::the_check_finds_lost_and_doubled_records(&fleet);
}
