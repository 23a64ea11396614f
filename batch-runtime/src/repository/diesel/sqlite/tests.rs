//! Tests of SQLite alone: files, and waiting for their lock.

use super::super::transaction_error::TransactionError;
use super::fixture::Place;
use super::per_backend::tests::{StartedJob, claim, number};
use super::*;
use crate::clock::SystemClock;
use crate::repository::diesel::pool::Tx;
use crate::repository::{ClaimError, HolderState, JobStore, OperatorStore};

const LONG: Duration = Duration::from_secs(3_600);

// Spec: OP-34, OP-35
#[test]
#[cfg(unix)]
fn an_owner_is_alive_through_a_symbolic_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| {
        let url = format!("sqlite://{}", folder.path().join(file).display());
        open(
            &url,
            SessionSettings::default(),
            RepositoryConfig::with_lease(LONG),
        )
        .unwrap()
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

/// A runner whose wait times out has lost its lease: the wait is longer than the usual lease.
// Spec: OP-35
#[test]
fn a_connection_waits_longer_than_a_lease_lasts() {
    let place = Place::new();
    let repository = place.open(Arc::new(SystemClock), LONG);
    let lease = Duration::from_secs(30);
    let waits = number(&repository, "SELECT timeout FROM pragma_busy_timeout");
    assert!(u128::try_from(waits).unwrap() > lease.as_millis(), "{waits} ms");
}

/// A renewal of a lease goes ahead of the transactions that wait already; these have their turn in the order of their requests.
// Spec: OP-35
#[test]
fn a_renewal_goes_ahead_of_other_writes() {
    let place = Place::new();
    let repository = place.open(Arc::new(SystemClock), LONG);
    let pool = &repository.pool;
    let held = pool.write_lock().unwrap();
    let (writes, written) = std::sync::mpsc::channel();
    let write = |name: &'static str| {
        let writes = writes.clone();
        move || writes.send(name).unwrap()
    };
    std::thread::scope(|scope| {
        let until_waiting = |number: usize| {
            while held.waiting() < number {
                std::thread::yield_now();
            }
        };
        let plain = write("plain");
        scope.spawn(move || {
            let work = pool.run(Tx::write("write"), |_, _| {
                plain();
                Ok::<(), TransactionError<RepositoryError>>(())
            });
            work.unwrap();
        });
        until_waiting(1);
        let chunk = write("chunk");
        scope.spawn(move || {
            let _lock = pool.write_lock().unwrap();
            chunk();
        });
        until_waiting(2);
        let renewal = write("renewal");
        scope.spawn(move || {
            let work = pool.run(Tx::write("write").once().with_priority(), |_, _| {
                renewal();
                Ok::<(), TransactionError<RepositoryError>>(())
            });
            work.unwrap();
        });
        until_waiting(3);
        drop(held);
    });
    drop(writes);
    assert_eq!(written.iter().collect::<Vec<_>>(), ["renewal", "plain", "chunk"]);
}

/// Looking for a repository waits while another process holds the file, for example to close it.
// Spec: OP-17, REPO-06
#[test]
fn looking_for_a_repository_waits_for_the_file_lock() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch.db");
    let url = format!("sqlite://{}", file.display());
    drop(
        open(
            &url,
            SessionSettings::default(),
            RepositoryConfig::with_lease(LONG),
        )
        .unwrap(),
    );
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
    assert_eq!(
        looking.join().unwrap().unwrap(),
        Some((RepositoryLayout::V4_3, Vec::new()))
    );
}

/// The reason is that of the operating system, which SQLite does not report.
// Spec: REPO-06
#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_created_has_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let url = format!("sqlite://{}/batch.db", folder.path().join("file").display());
    let opened = open(
        &url,
        SessionSettings::default(),
        RepositoryConfig::with_lease(LONG),
    );
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("Not a directory"), "{error}");
    assert!(error.ends_with("(the file cannot be created)"), "{error}");
}

/// A file that was moved away is neither replaced by an empty one nor confused with another one that takes its place.
// Spec: REPO-06
#[test]
#[cfg(unix)]
fn a_file_that_was_moved_away_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let url = format!("sqlite://{}", path("batch.db").display());
    let repository = open(
        &url,
        SessionSettings::default(),
        RepositoryConfig::with_lease(LONG),
    )
    .unwrap();
    let connect = || {
        let connected = repository.connector().connect();
        connected.err().map(|error| error.to_string())
    };
    assert_eq!(connect(), None);
    std::fs::rename(path("batch.db"), path("moved.db")).unwrap();
    let missing = connect().unwrap();
    assert!(missing.contains("(the file does not exist)"), "{missing}");
    assert!(!path("batch.db").exists(), "it was created again");
    std::fs::copy(path("moved.db"), path("batch.db")).unwrap();
    let replaced = connect().unwrap();
    assert!(
        replaced.contains("the file was replaced while this program uses it"),
        "{replaced}"
    );
    std::fs::rename(path("moved.db"), path("batch.db")).unwrap();
    assert_eq!(connect(), None, "it is back");
}

// Spec: REPO-06
#[test]
#[cfg(unix)]
fn others_cannot_read_a_new_database() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for (option, expected) in [("", 0o600), ("?file_mode=0660", 0o660)] {
        let file = folder.path().join(format!("{expected:o}.db"));
        let url = format!("sqlite://{}{option}", file.display());
        let repository = open(
            &url,
            SessionSettings::default(),
            RepositoryConfig::with_lease(LONG),
        )
        .unwrap();
        let _started = StartedJob::new(&repository);
        let owners = format!("{}-owners", file.display());
        let lock = std::fs::read_dir(owners).unwrap().next().unwrap().unwrap();
        let mut of_first = None;
        let of_database = ["", "-wal", "-shm"].map(|suffix| format!("{}{suffix}", file.display()));
        for file in of_database.into_iter().chain([lock.path().display().to_string()]) {
            let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
            // The process may have a umask.
            assert_eq!(mode & !0o060, expected & !0o060, "{file}");
            assert_eq!(mode & 0o007, 0, "{file}");
            assert_eq!(mode, *of_first.get_or_insert(mode), "{file}");
        }
    }
}
