//! Tests of SQLite alone: files, and waiting for their lock.

use super::fixture::Place;
use super::per_backend::tests::{StartedJob, claim, number};
use super::*;
use crate::clock::SystemClock;
use crate::repository::{ClaimError, HolderState, OperatorStore};

const LONG: Duration = Duration::from_secs(3_600);

/// Spec: OP-34, OP-35
#[test]
#[cfg(unix)]
fn an_owner_is_alive_through_a_symbolic_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| {
        let url = format!("sqlite://{}", folder.path().join(file).display());
        open(&url, SessionSettings::default(), Arc::new(SystemClock), LONG).unwrap()
    };
    let one = at("batch.db");
    let started = StartedJob::new(&one);
    std::os::unix::fs::symlink("batch.db", folder.path().join("link.db")).unwrap();
    let other = at("link.db");
    assert!(matches!(claim(&other), Err(ClaimError::Running { .. })));
    assert_eq!(
        other.holder_state(started.job.id).unwrap(),
        Some(HolderState::Alive)
    );
    let next = claim(&{
        drop(one);
        other
    });
    assert_eq!(next.unwrap().taken_over, [started.job.id], "now it is dead");
}

/// A runner that has waited in vain has lost its lease: the wait is longer than the usual lease.
///
/// Spec: OP-35
#[test]
fn a_connection_waits_longer_than_a_lease_lasts() {
    let repository = Place::new().open(Arc::new(SystemClock), LONG);
    let lease = Duration::from_secs(30);
    let waits = number(&repository, "SELECT timeout FROM pragma_busy_timeout");
    assert!(u128::try_from(waits).unwrap() > lease.as_millis(), "{waits} ms");
}

/// Looking for a repository waits while another process holds the file, for example to close it.
///
/// Spec: OP-17, REPO-06
#[test]
fn looking_for_a_repository_waits_for_the_file_lock() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch.db");
    let url = format!("sqlite://{}", file.display());
    drop(open(&url, SessionSettings::default(), Arc::new(SystemClock), LONG).unwrap());
    let mut holder = diesel::SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    // Without the write-ahead log an exclusive transaction keeps readers out.
    let lock = "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE";
    holder.batch_execute(lock).unwrap();
    let (begins, started) = std::sync::mpsc::channel();
    let looking = std::thread::spawn(move || {
        begins.send(()).unwrap();
        missing_migrations(&url, SessionSettings::default())
    });
    started.recv().unwrap();
    // Work that takes longer than a query without a wait.
    for _ in 0..10_000 {
        holder
            .batch_execute("SELECT COUNT(*) FROM BATCH_JOB_INSTANCE")
            .unwrap();
    }
    holder.batch_execute("COMMIT").unwrap();
    assert_eq!(looking.join().unwrap().unwrap(), Some(Vec::new()));
}
