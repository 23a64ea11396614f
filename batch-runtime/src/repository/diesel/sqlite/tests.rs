//! What there is on SQLite only: files, and waiting for who holds one.

use super::fixture::Place;
use super::per_backend::tests::{Begun, claim, number};
use super::*;
use crate::clock::SystemClock;
use crate::repository::{ClaimError, OperatorStore};

const LONG: Duration = Duration::from_secs(3_600);

/// Spec: OP-34, OP-35
#[test]
#[cfg(unix)]
fn an_owner_lives_for_those_who_come_by_a_symbolic_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| {
        let url = format!("sqlite://{}", folder.path().join(file).display());
        open(&url, SessionSettings::default(), Arc::new(SystemClock), LONG).unwrap()
    };
    let one = at("batch.db");
    let begun = Begun::new(&one);
    std::os::unix::fs::symlink("batch.db", folder.path().join("link.db")).unwrap();
    let other = at("link.db");
    assert!(matches!(claim(&other), Err(ClaimError::Running { .. })));
    assert!(other.is_running(begun.job.id).unwrap());
    let next = claim(&{
        drop(one);
        other
    });
    assert_eq!(next.unwrap().taken_over, [begun.job.id], "now it is dead");
}

/// Whoever has waited for a lock in vain has lost its lease anyway: a wait is longer than the lease that is usual.
///
/// Spec: OP-35
#[test]
fn a_connection_waits_longer_than_a_lease_lasts() {
    let repository = Place::new().open(Arc::new(SystemClock), LONG);
    let lease = Duration::from_secs(30);
    let waits = number(&repository, "SELECT timeout FROM pragma_busy_timeout");
    assert!(u128::try_from(waits).unwrap() > lease.as_millis(), "{waits} ms");
}

/// Whoever looks for a repository waits while another process holds the file, as one does that closes it.
///
/// Spec: OP-17, REPO-06
#[test]
fn looking_for_a_repository_waits_for_who_holds_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch.db");
    let url = format!("sqlite://{}", file.display());
    drop(open(&url, SessionSettings::default(), Arc::new(SystemClock), LONG).unwrap());
    let mut holder = diesel::SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    // Without the write-ahead log an exclusive transaction keeps readers out.
    let lock = "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE";
    holder.batch_execute(lock).unwrap();
    let (begins, begun) = std::sync::mpsc::channel();
    let looking = std::thread::spawn(move || {
        begins.send(()).unwrap();
        missing_migrations(&url, SessionSettings::default())
    });
    begun.recv().unwrap();
    // Work that takes longer than a look that does not wait.
    for _ in 0..10_000 {
        holder
            .batch_execute("SELECT COUNT(*) FROM BATCH_JOB_INSTANCE")
            .unwrap();
    }
    holder.batch_execute("COMMIT").unwrap();
    assert_eq!(looking.join().unwrap().unwrap(), Some(Vec::new()));
}
