//! Two owners on one database: who may write, and what is said when nobody can.

use std::collections::BTreeMap;

use diesel::connection::SimpleConnection;
use diesel::sql_types::BigInt;
use tempfile::TempDir;

use super::*;
use crate::clock::{SystemClock, Timestamp};
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::StepExecutionId;
use crate::parameters::JobParameters;
use crate::repository::{
    Claim, ClaimError, ClaimRequest, Ending, JobRepository, Lease, StepState, StopOutcome, Target,
};
use crate::status::BatchStatus;

/// A lease that has expired as soon as it is taken: the owner lives, but nobody believes it.
const EXPIRED: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(3_600);

struct FixedClock(i64);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0)
    }
}

fn open_at(folder: &TempDir, file: &str, clock: Arc<dyn Clock>, lease: Duration) -> DieselRepository {
    let url = format!(
        "sqlite://{}?synchronous=normal",
        folder.path().join(file).display()
    );
    DieselRepository::open(&url, clock, lease).unwrap()
}

fn open(folder: &TempDir, lease: Duration) -> DieselRepository {
    open_at(folder, "batch.db", Arc::new(SystemClock), lease)
}

fn claim(repository: &DieselRepository) -> Result<Claim, ClaimError> {
    repository.claim(&ClaimRequest {
        job_name: "job",
        target: Target::Identified,
        parameters: JobParameters::new().with("day", "1"),
        restartable: true,
        location: "job.xml",
    })
}

fn execute(repository: &DieselRepository, statements: &str) {
    let mut connection = repository.pool.take().unwrap();
    connection.sqlite().unwrap().batch_execute(statements).unwrap();
}

fn number(repository: &DieselRepository, query: &str) -> i64 {
    #[derive(diesel::QueryableByName)]
    struct Number {
        #[diesel(sql_type = BigInt)]
        n: i64,
    }
    let mut connection = repository.pool.take().unwrap();
    let row: Number = diesel::sql_query(format!("SELECT ({query}) AS n"))
        .get_result(connection.sqlite().unwrap())
        .unwrap();
    row.n
}

const EXPIRES_AT: &str = "SELECT EXPIRES_AT FROM BATCH_JOB_INSTANCE_LEASE";
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// An execution that has come as far as its first step.
struct Begun {
    lease: Lease,
    job: JobExecution,
    step: StepExecution,
}

impl Begun {
    fn new(repository: &DieselRepository) -> Self {
        let Claim {
            mut execution, lease, ..
        } = claim(repository).unwrap();
        assert!(repository.begin_job(&lease, &mut execution).unwrap());
        let mut step = repository
            .create_step(&lease, "one", &StepState::default())
            .unwrap();
        repository.begin_step(&mut step).unwrap();
        Self {
            lease,
            job: execution,
            step,
        }
    }

    fn renew(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        renewed(repository.renew(&self.lease))
    }

    fn begin_job(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        repository.begin_job(&self.lease, &mut self.job.clone()).map(drop)
    }

    fn end_job(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        repository
            .end_job(&self.lease, &mut self.job.clone(), &completed())
            .map(drop)
    }

    fn create_step(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        repository
            .create_step(&self.lease, "two", &StepState::default())
            .map(drop)
    }

    fn begin_step(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        repository.begin_step(&mut self.step.clone())
    }

    fn keep_element_states(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        repository.keep_element_states(&self.lease, &BTreeMap::new())
    }

    fn commit(&self, repository: &DieselRepository, renew: Option<&Lease>) -> Result<(), RepositoryError> {
        let counters = StepCounters {
            reads: 7,
            writes: 7,
            ..StepCounters::default()
        };
        let mut tx = repository.begin_chunk();
        tx.sqlite().unwrap();
        repository.commit_chunk(tx, &mut self.step.clone(), counters, &StepState::default(), renew)
    }

    fn commit_chunk(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        self.commit(repository, None)
    }

    fn commit_and_renew(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        self.commit(repository, Some(&self.lease))
    }

    fn end_step(&self, repository: &DieselRepository) -> Result<(), RepositoryError> {
        let state = StepState::default();
        repository.end_step(
            &mut self.step.clone(),
            &completed(),
            StepCounters::default(),
            Some(&state),
        )
    }
}

type Write = fn(&Begun, &DieselRepository) -> Result<(), RepositoryError>;

/// Everything that a runner writes.
const WRITES: [(&str, Write); 9] = [
    ("renew", Begun::renew),
    ("begin_job", Begun::begin_job),
    ("create_step", Begun::create_step),
    ("begin_step", Begun::begin_step),
    ("keep_element_states", Begun::keep_element_states),
    ("commit_chunk", Begun::commit_chunk),
    ("commit_chunk that renews", Begun::commit_and_renew),
    ("end_step", Begun::end_step),
    ("end_job", Begun::end_job),
];

fn completed() -> Ending {
    Ending {
        status: BatchStatus::Completed,
        exit_status: "COMPLETED".into(),
        message: String::new(),
        restart: None,
    }
}

/// A renewal that is refused is a fence too.
fn renewed(renewed: Result<bool, RepositoryError>) -> Result<(), RepositoryError> {
    if renewed? {
        Ok(())
    } else {
        Err(RepositoryError::Fenced { action: "renew" })
    }
}

/// Every write of the loser is refused, and none leaves a trace.
fn check_fenced(loser: &DieselRepository, begun: &Begun) {
    let before = content(loser);
    for (name, write) in WRITES {
        let result = write(begun, loser);
        assert!(
            matches!(result, Err(RepositoryError::Fenced { .. })),
            "{name}: {result:?}"
        );
        assert_eq!(content(loser), before, "{name}");
    }
}

fn content(repository: &DieselRepository) -> BTreeMap<&'static str, i64> {
    let sum = |query| (query, number(repository, query));
    [
        "SELECT COUNT(*) FROM BATCH_STEP_EXECUTION",
        "SELECT SUM(VERSION) FROM BATCH_STEP_EXECUTION",
        "SELECT SUM(READ_COUNT) FROM BATCH_STEP_EXECUTION",
        "SELECT SUM(VERSION) FROM BATCH_JOB_EXECUTION",
        EXPIRES_AT,
    ]
    .into_iter()
    .map(sum)
    .collect()
}

/// A runtime that slept through a stop, which closed its execution, writes nothing more: before the next claim, after it,
/// and after that one's end.
///
/// Spec: REPO-15, REPO-17, OP-17, OP-35, STATUS-26
#[test]
fn a_runner_whose_execution_was_closed_by_a_stop_is_fenced() {
    let folder = tempfile::tempdir().unwrap();
    let (zombie, other) = (open(&folder, EXPIRED), open(&folder, LONG));
    let begun = Begun::new(&zombie);
    let stopped = other.request_stop(begun.job.id).unwrap();
    assert_eq!(stopped, Some(StopOutcome::Closed));
    check_fenced(&zombie, &begun);
    let mut next = Begun::new(&other);
    check_fenced(&zombie, &begun);
    assert!(other.end_job(&next.lease, &mut next.job, &completed()).unwrap());
    check_fenced(&zombie, &begun);
    let closed = other.execution(begun.job.id).unwrap().unwrap();
    assert_eq!(closed.status, BatchStatus::Stopped);
}

/// The same before its first step, and before the job counts as begun.
///
/// Spec: REPO-15, OP-17, OP-35
#[test]
fn a_runner_that_was_stopped_before_it_began_is_fenced() {
    let folder = tempfile::tempdir().unwrap();
    let (zombie, other) = (open(&folder, EXPIRED), open(&folder, LONG));
    let Claim {
        mut execution, lease, ..
    } = claim(&zombie).unwrap();
    let stopped = other.request_stop(execution.id).unwrap();
    assert_eq!(stopped, Some(StopOutcome::Closed));
    for _ in 0..2 {
        let begun = zombie.begin_job(&lease, &mut execution);
        assert!(matches!(begun, Err(RepositoryError::Fenced { .. })), "{begun:?}");
        let step = zombie.create_step(&lease, "one", &StepState::default());
        assert!(matches!(step, Err(RepositoryError::Fenced { .. })), "{step:?}");
        let ended = zombie.end_job(&lease, &mut execution, &completed());
        assert!(matches!(ended, Err(RepositoryError::Fenced { .. })), "{ended:?}");
        let _ = claim(&other);
    }
}

/// Spec: REPO-15, OP-34, OP-35
#[test]
fn a_runner_that_was_taken_over_is_fenced() {
    let folder = tempfile::tempdir().unwrap();
    let (zombie, other) = (open(&folder, EXPIRED), open(&folder, LONG));
    let begun = Begun::new(&zombie);
    let next = Begun::new(&other);
    check_fenced(&zombie, &begun);
    // What is nobody's loss: the winner goes on.
    for (name, write) in WRITES.into_iter().filter(|(name, _)| *name != "begin_job") {
        if name.starts_with("commit") || name == "end_step" {
            continue;
        }
        assert!(write(&next, &other).is_ok(), "{name}");
    }
}

/// One owner that claims twice: the fence tells its leases apart.
///
/// Spec: REPO-15, OP-35
#[test]
fn an_owner_cannot_use_its_own_older_lease() {
    let folder = tempfile::tempdir().unwrap();
    let repository = open(&folder, EXPIRED);
    let older = Begun::new(&repository);
    let newer = Begun::new(&repository);
    assert_ne!(older.lease.fence, newer.lease.fence);
    check_fenced(&repository, &older);
    assert!(repository.renew(&newer.lease).unwrap());
    repository.give_up(&older.lease).unwrap();
    assert!(
        repository.renew(&newer.lease).unwrap(),
        "given back by its predecessor"
    );
}

/// A lease that somebody deleted begins anew with fence 1; the owner tells it from the one before.
///
/// Spec: REPO-15, OP-35
#[test]
fn a_lease_with_the_same_fence_belongs_to_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let (loser, winner, third) = (open(&folder, LONG), open(&folder, LONG), open(&folder, LONG));
    let lost = Begun::new(&loser);
    execute(
        &loser,
        "DELETE FROM BATCH_JOB_INSTANCE_LEASE; DELETE FROM BATCH_STEP_EXECUTION_CONTEXT; DELETE FROM BATCH_STEP_EXECUTION;
         UPDATE BATCH_JOB_EXECUTION SET STATUS = 'FAILED', VERSION = VERSION + 1",
    );
    let held = Begun::new(&winner);
    assert_eq!(lost.lease.fence, held.lease.fence);
    check_fenced(&loser, &lost);
    loser.give_up(&lost.lease).unwrap();
    assert!(matches!(claim(&third), Err(ClaimError::Running { .. })));
}

/// Only the lease itself tells: the rows are still as the runner left them.
///
/// Spec: REPO-15, OP-35
#[test]
fn a_lost_lease_is_noticed_without_a_change_of_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let repository = open(&folder, LONG);
    let begun = Begun::new(&repository);
    execute(
        &repository,
        "UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = FENCE + 1",
    );
    let before = content(&repository);
    for (name, write) in [
        WRITES[0],
        ("create_step", Begun::create_step),
        ("commit_chunk that renews", Begun::commit_and_renew),
        ("end_job", Begun::end_job),
    ] {
        let result = write(&begun, &repository);
        assert!(
            matches!(result, Err(RepositoryError::Fenced { .. })),
            "{name}: {result:?}"
        );
        assert_eq!(content(&repository), before, "{name}");
    }
}

/// Spec: OP-35
#[test]
fn a_renewal_moves_the_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let repository = open(&folder, LONG);
    let begun = Begun::new(&repository);
    let expire = "UPDATE BATCH_JOB_INSTANCE_LEASE SET EXPIRES_AT = 0";
    let is_held = || number(&repository, EXPIRES_AT) > number(&repository, NOW);
    assert!(is_held());
    execute(&repository, expire);
    assert!(repository.renew(&begun.lease).unwrap() && is_held());
    execute(&repository, expire);
    begun.commit_and_renew(&repository).unwrap();
    assert!(is_held(), "a commit that was to renew the lease");
}

/// Spec: OP-35
#[test]
fn a_lease_that_was_given_back_can_be_taken_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(&folder, LONG), open(&folder, LONG));
    let begun = Begun::new(&one);
    let refused = claim(&other);
    assert!(
        matches!(&refused, Err(ClaimError::Running { execution, .. }) if *execution == begun.job.id),
        "{refused:?}"
    );
    one.give_up(&begun.lease).unwrap();
    assert_eq!(claim(&other).unwrap().taken_over, [begun.job.id]);
    check_fenced(&one, &begun);
}

/// The lease says who runs an instance, not a status that somebody set by hand.
///
/// Spec: OP-34, OP-35
#[test]
fn a_held_lease_counts_more_than_the_status() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(&folder, LONG), open(&folder, LONG));
    let begun = Begun::new(&one);
    for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
        let close = format!("UPDATE {table} SET STATUS = 'FAILED', END_TIME = 9, VERSION = VERSION + 1");
        execute(&one, &close);
    }
    let refused = claim(&other);
    assert!(
        matches!(&refused, Err(ClaimError::Running { execution, .. }) if *execution == begun.job.id),
        "{refused:?}"
    );
    one.give_up(&begun.lease).unwrap();
    claim(&other).unwrap();
}

/// Spec: OP-34, OP-35
#[test]
#[cfg(unix)]
fn an_owner_lives_for_those_who_come_by_a_symbolic_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| open_at(&folder, file, Arc::new(SystemClock), LONG);
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

/// A takeover whose clock lies behind the dead owner's, and a stop that closes.
///
/// Spec: REPO-42, REPO-43, REPO-50, OP-35
#[test]
fn what_is_closed_for_a_dead_owner_does_not_end_before_it_began() {
    type Close = fn(&DieselRepository, &Begun);
    let close: [Close; 2] = [
        |other, _| drop(claim(other).unwrap()),
        |other, begun| {
            assert_eq!(
                other.request_stop(begun.job.id).unwrap(),
                Some(StopOutcome::Closed)
            )
        },
    ];
    for close in close {
        let folder = tempfile::tempdir().unwrap();
        let open = |now, lease| open_at(&folder, "batch.db", Arc::new(FixedClock(now)), lease);
        let (ahead, behind) = (open(2_000_000, EXPIRED), open(1_000, LONG));
        let begun = Begun::new(&ahead);
        close(&behind, &begun);
        let job = behind.execution(begun.job.id).unwrap().unwrap();
        assert!(job.ended.is_some() && job.ended >= job.started, "{job:?}");
        let step = &behind.steps(begun.job.id).unwrap()[0];
        assert!(step.ended.is_some_and(|ended| ended >= step.started), "{step:?}");
    }
}

/// A statement that fails and takes the transaction with it, on each table in turn: its own error is shown, not the one of
/// the ROLLBACK that has nothing left to do.
///
/// Spec: REPO-16
#[test]
fn the_true_cause_of_a_failed_write_is_shown() {
    let check = |place: &str, write: Write| {
        let folder = tempfile::tempdir().unwrap();
        let repository = open(&folder, LONG);
        let begun = Begun::new(&repository);
        refuse(&repository, place);
        let error = write(&begun, &repository).unwrap_err().to_string();
        assert!(error.contains("the true cause"), "{place}: {error}");
        // Nothing is left locked or half-open.
        execute(
            &repository,
            "DROP TRIGGER refuse; UPDATE BATCH_JOB_SEQ SET ID = ID",
        );
        assert!(write(&begun, &repository).is_ok(), "{place}");
    };
    check("UPDATE ON BATCH_JOB_EXECUTION", Begun::begin_job);
    check("UPDATE ON BATCH_JOB_EXECUTION", Begun::end_job);
    check("UPDATE ON BATCH_JOB_EXECUTION", |begun, repository| {
        repository.request_stop(begun.job.id).map(drop)
    });
    check("UPDATE ON BATCH_JOB_INSTANCE_LEASE", Begun::renew);
    check("UPDATE ON BATCH_JOB_INSTANCE_LEASE", Begun::end_job);
    check("UPDATE ON BATCH_JOB_INSTANCE_LEASE", Begun::commit_and_renew);
    check("UPDATE ON BATCH_JOB_INSTANCE_LEASE", |begun, repository| {
        repository.give_up(&begun.lease)
    });
    check("INSERT ON BATCH_STEP_EXECUTION", Begun::create_step);
    check("INSERT ON BATCH_STEP_EXECUTION_CONTEXT", Begun::create_step);
    check("UPDATE ON BATCH_STEP_EXECUTION", Begun::begin_step);
    check("UPDATE ON BATCH_STEP_EXECUTION", Begun::commit_chunk);
    check("UPDATE ON BATCH_STEP_EXECUTION", Begun::end_step);
    check("UPDATE ON BATCH_STEP_EXECUTION_CONTEXT", Begun::commit_chunk);
    check("UPDATE ON BATCH_STEP_EXECUTION_CONTEXT", Begun::end_step);
}

/// The same for a claim, which writes most tables.
///
/// Spec: REPO-86
#[test]
fn the_true_cause_of_a_failed_claim_is_shown() {
    for table in [
        "BATCH_JOB_SEQ",
        "BATCH_JOB_INSTANCE",
        "BATCH_JOB_EXECUTION_SEQ",
        "BATCH_JOB_EXECUTION",
        "BATCH_JOB_EXECUTION_PARAMS",
        "BATCH_JOB_EXECUTION_CONTEXT",
        "BATCH_JOB_INSTANCE_LEASE",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let repository = open(&folder, LONG);
        refuse(&repository, &format!("INSERT ON {table}"));
        let error = match claim(&repository) {
            Err(ClaimError::Repository(error)) => error.to_string(),
            other => panic!("{table}: {other:?}"),
        };
        assert!(error.contains("the true cause"), "{table}: {error}");
        let left =
            "SELECT (SELECT COUNT(*) FROM BATCH_JOB_INSTANCE) + (SELECT COUNT(*) FROM BATCH_JOB_EXECUTION)";
        assert_eq!(number(&repository, left), 0, "{table}");
    }
}

fn refuse(repository: &DieselRepository, place: &str) {
    execute(
        repository,
        &format!("CREATE TRIGGER refuse BEFORE {place} BEGIN SELECT RAISE(ROLLBACK, 'the true cause'); END"),
    );
}

/// Whoever has waited for a lock in vain has lost its lease anyway: a wait is longer than the lease that is usual.
///
/// Spec: OP-35
#[test]
fn a_connection_waits_longer_than_a_lease_lasts() {
    let folder = tempfile::tempdir().unwrap();
    let repository = open(&folder, LONG);
    let lease = Duration::from_secs(30);
    let waits = number(&repository, "SELECT timeout FROM pragma_busy_timeout");
    assert!(u128::try_from(waits).unwrap() > lease.as_millis(), "{waits} ms");
}

/// Whoever looks for a repository waits while another process holds the file, as one does that closes it.
///
/// Spec: OP-17, REPO-06
#[cfg(feature = "cli")]
#[test]
fn looking_for_a_repository_waits_for_who_holds_the_file() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder, LONG));
    let file = folder.path().join("batch.db");
    let mut holder = diesel::SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    // Without the write-ahead log an exclusive transaction keeps readers out.
    let lock = "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE";
    holder.batch_execute(lock).unwrap();
    let url = format!("sqlite://{}", file.display());
    let (begins, begun) = std::sync::mpsc::channel();
    let looking = std::thread::spawn(move || {
        begins.send(()).unwrap();
        DieselRepository::exists(&url)
    });
    begun.recv().unwrap();
    // Work that takes longer than a look that does not wait.
    for _ in 0..10_000 {
        holder
            .batch_execute("SELECT COUNT(*) FROM BATCH_JOB_INSTANCE")
            .unwrap();
    }
    holder.batch_execute("COMMIT").unwrap();
    assert!(looking.join().unwrap().unwrap());
}

/// A partition that was handed out twice is claimed once.
///
/// Spec: PART-32, REPO-15
#[test]
fn a_step_is_claimed_by_whoever_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let repository = open(&folder, LONG);
    let begun = Begun::new(&repository);
    let created = repository
        .create_step(&begun.lease, "two:1", &StepState::default())
        .unwrap();
    let (claimed, state) = repository.claim_step(created.id).unwrap().unwrap();
    assert_eq!((claimed.status, claimed.version), (BatchStatus::Started, 1));
    assert_eq!(state, StepState::default());
    assert!(repository.claim_step(created.id).unwrap().is_none());
    assert!(repository.claim_step(StepExecutionId(77)).unwrap().is_none());
}
