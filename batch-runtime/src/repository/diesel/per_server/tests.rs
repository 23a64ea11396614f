//! The sessions of an owner: how they are ended, and how they are found when they hold a lock.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use batch_test_servers::Kind;
use diesel::connection::SimpleConnection;

use super::super::fixture::{KIND, Place, SHORT_WAIT};
use super::super::per_backend::tests::{StartedJob, number, observer, open as open_with, register};
use super::*;
use crate::repository::diesel::pool::{Pool, Tx};
use crate::repository::diesel::session::SessionSettings;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::{
    InnerSteps, InsertStep, PartitionState, PartitionStore, QueueStore, RepositoryError, Result, StepState,
};

const LOCK: &str = "BEGIN; UPDATE seat SET taken = 1";
const WRITE: &str = "UPDATE seat SET taken = 2";

fn with_seat() -> Place {
    let place = Place::new();
    let mut connection = observer(&place).pool.take().unwrap();
    let create = "CREATE TABLE seat (taken INTEGER); INSERT INTO seat VALUES (0)";
    connection.batch_execute(create).unwrap();
    place
}

/// The sessions of other owners are left alone.
// Spec: OP-35
#[test]
fn the_sessions_of_an_owner_can_be_ended() {
    let place = with_seat();
    let (dead, alive, successor) = (observer(&place), observer(&place), observer(&place));
    let mut sessions: Vec<_> = (0..3).map(|_| dead.pool.take().unwrap()).collect();
    let mut of_other = alive.pool.take().unwrap();
    sessions[2].batch_execute(LOCK).unwrap();

    let mut connection = successor.pool.take().unwrap();
    Db::end_sessions(&mut connection, dead.owner.name()).unwrap();
    connection.batch_execute(WRITE).unwrap();
    for session in &mut sessions {
        session.batch_execute("COMMIT").unwrap_err();
    }
    of_other.batch_execute("COMMIT").unwrap();
    assert_eq!(number(&successor, "SELECT MAX(taken) AS value FROM seat"), 2);
    Db::end_sessions(&mut connection, "host/1/'; DROP TABLE seat/unlocked").unwrap();
}

/// The number of connections that a server which is gone for good refuses: the first transaction keeps trying, the next ones,
/// which record the failure, try once and once more.
// Spec: REPO-02
#[test]
fn only_the_first_transaction_waits_for_a_lost_server() {
    let place = Place::new();
    let repository = observer(&place);
    let living = [repository.pool.take().unwrap(), repository.pool.take().unwrap()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = match KIND {
        Kind::Postgres => format!("postgres://{address}/db?sslmode=disable&gssencmode=disable"),
        Kind::Mariadb => format!("mysql://{address}/db"),
    };
    let (attempts, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&attempts);
    thread::spawn(move || {
        for client in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
            drop(client);
        }
    });
    let patience = Duration::from_millis(100);
    let pool = Pool::new(Db::new(&url, ""), SessionSettings::default(), patience).unwrap();
    let fails = || {
        pool.begin(Db::BEGIN_WRITE).map(drop).unwrap_err();
        let all = attempts.load(Ordering::SeqCst);
        all - counted.swap(all, Ordering::SeqCst)
    };
    // A poll does not wait, and leaves its patience to the next transaction.
    let polled: Result<()> = pool.run(Tx::read("poll").once(), |connection, _| {
        Ok(connection.batch_execute("SELECT 1")?)
    });
    polled.unwrap_err();
    assert_eq!(attempts.swap(0, Ordering::SeqCst), 2);
    assert!(fails() > 3);
    assert_eq!([fails(), fails()], [2, 2]);
    // It is back, with a connection that chunks may take.
    living.into_iter().for_each(|session| pool.put_back(session));
    let mut session = pool.begin(Db::BEGIN_WRITE).unwrap();
    session.batch_execute("ROLLBACK").unwrap();
    assert!(fails() > 3);
}

/// A single statement is not preceded by a BEGIN that would notice a lost connection. It takes a new one at once, however many idle
/// connections the server has closed.
// Spec: REPO-02
#[test]
fn a_single_statement_replaces_closed_connections() {
    let place = with_seat();
    // It does not wait for the server.
    let (impatient, other) = (open_with(&place, Duration::ZERO), observer(&place));
    let sessions: Vec<_> = (0..3).map(|_| impatient.pool.take().unwrap()).collect();
    let mut connection = other.pool.take().unwrap();
    Db::end_sessions(&mut connection, impatient.owner.name()).unwrap();
    sessions
        .into_iter()
        .for_each(|session| impatient.pool.put_back(session));
    let mut doubts = Vec::new();
    let written: Result<()> = impatient
        .pool
        .run(Tx::statement("write"), |connection, in_doubt| {
            doubts.push(in_doubt);
            Ok(connection.batch_execute(WRITE)?)
        });
    written.unwrap();
    assert_eq!(doubts, [false, true]);
    assert_eq!(number(&other, "SELECT MAX(taken) AS value FROM seat"), 2);
}

/// The locking session may belong to any program.
// Spec: REPO-15
#[test]
fn a_wait_for_a_locked_row_names_the_session_to_end() {
    let place = with_seat();
    let (holder, waiter) = (observer(&place), observer(&place));
    let mut session = holder.pool.take().unwrap();
    session.batch_execute(LOCK).unwrap();
    let mut impatient = waiter.pool.take().unwrap();
    impatient.batch_execute(SHORT_WAIT).unwrap();
    waiter.pool.put_back(impatient);
    let error = waiter
        .pool
        .run(
            Tx::write("write"),
            |connection, _| -> Result<(), TransactionError<RepositoryError>> {
                Ok(connection.batch_execute(WRITE)?)
            },
        )
        .unwrap_err()
        .to_string();
    let statement = error.split('`').nth_back(1).unwrap_or_else(|| panic!("{error}"));
    waiter.pool.take().unwrap().batch_execute(statement).unwrap();
    session.batch_execute("COMMIT").unwrap_err();
}

/// The worker is suspended in a transaction that has locked the row of its partition.
// Spec: OP-35, PART-32
#[test]
fn the_partition_of_a_suspended_worker_is_reopened() {
    let place = Place::new();
    let (coordinator, worker) = (observer(&place), open_with(&place, Duration::ZERO));
    let lease = StartedJob::new(&coordinator).lease;
    let row = coordinator
        .create_step(&lease, "one:1", &StepState::default())
        .unwrap();
    assert!(
        worker
            .claim_partition(row.job_execution_id, row.id, false)
            .unwrap()
            .is_some()
    );
    let mut session = worker.pool.take().unwrap();
    let lock = format!(
        "BEGIN; UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION WHERE STEP_EXECUTION_ID = {}",
        row.id
    );
    session.batch_execute(&lock).unwrap();
    let reopened = coordinator
        .reopen_partition(&lease, row.id, InnerSteps::None)
        .unwrap();
    assert!(
        matches!(
            &reopened,
            PartitionState::Reopened {
                claims: 1,
                died: Some((_, 0))
            }
        ),
        "{reopened:?}"
    );
    session.batch_execute("COMMIT").unwrap_err();
}

/// A partition of a flow makes progress by the chunks and the ends of its steps, which the crash limit counts.
// Spec: OP-35, DISP-02
#[test]
fn the_progress_of_a_dead_worker_is_that_of_its_inner_steps() {
    let place = Place::new();
    let (coordinator, worker) = (observer(&place), open_with(&place, Duration::ZERO));
    let lease = StartedJob::new(&coordinator).lease;
    let create = |name: &str| {
        coordinator
            .create_step(&lease, name, &StepState::default())
            .unwrap()
    };
    let row = create("flow:1");
    let claimed = worker
        .claim_partition(row.job_execution_id, row.id, false)
        .unwrap();
    assert!(claimed.is_some());
    create("flow:1/one");
    create("flow:1/two");
    create("flow:10/one");
    let mut session = worker.pool.take().unwrap();
    let statements = "UPDATE BATCH_STEP_EXECUTION SET COMMIT_COUNT = 3, STATUS = 'COMPLETED' WHERE STEP_NAME IN ('flow:1/one', 'flow:10/one'); \
                      UPDATE BATCH_STEP_EXECUTION SET COMMIT_COUNT = 2, STATUS = 'STARTED' WHERE STEP_NAME = 'flow:1/two'";
    session.batch_execute(statements).unwrap();
    let reopened = coordinator
        .reopen_partition(&lease, row.id, InnerSteps::Reopen)
        .unwrap();
    // Three commits and a complete step, and two commits.
    assert!(
        matches!(
            &reopened,
            PartitionState::Reopened {
                claims: 1,
                died: Some((_, 6))
            }
        ),
        "{reopened:?}"
    );
}

/// The worker is suspended while it claims the partition: it has locked the row, and no lease shows whose it is.
// Spec: OP-35, DISP-02
#[test]
fn a_partition_that_a_suspended_worker_was_claiming_is_claimed_by_another() {
    let place = Place::new();
    let (other, suspended) = (observer(&place), open_with(&place, Duration::ZERO));
    let lease = StartedJob::new(&other).lease;
    let row = other.create_step(&lease, "one:1", &StepState::default()).unwrap();
    register(&suspended);
    let mut session = suspended.pool.take().unwrap();
    let lock = format!(
        "BEGIN; UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1 WHERE STEP_EXECUTION_ID = {}",
        row.id
    );
    session.batch_execute(&lock).unwrap();
    register(&other);
    assert!(
        other
            .claim_partition(row.job_execution_id, row.id, true)
            .unwrap()
            .is_some()
    );
    session.batch_execute("COMMIT").unwrap_err();
    // It resumes, and is a worker like others again.
    register(&suspended);
    assert_eq!(other.workers().unwrap().len(), 2);
}
