//! Two owners of one database: which of them may write, and the errors of the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::sql_types::BigInt;

use super::super::fixture::{INTEGER, Place, begin, end_of_refusal, refusal};
use super::*;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::owner::Owner;
use crate::repository::{
    ArchiveStore, ChunkCommit, Claim, ClaimError, ClaimRequest, ElementState, EndOfStep, Ending, InsertStep,
    JobStore, Lease, Observations, OperatorStore, PartitionStore, QueueStore, Result, SideWrites, StepState,
    StepStore, StopOutcome, Target, WorkerRow,
};
use crate::status::BatchStatus;

/// A lease that expires at once: the owner lives, but loses its lease.
const EXPIRED: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(3_600);

struct FixedClock(i64);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0)
    }
}

pub(in crate::repository::diesel) fn open(place: &Place, lease: Duration) -> Repository {
    place.open(Arc::new(SystemClock), lease)
}

/// A runtime on another host whose lease expires at once: it lives, but does not renew its lease. Its sessions have the name of
/// another owner, as if the server did not allow its successor to end them.
pub(in crate::repository::diesel) fn zombie(place: &Place) -> Repository {
    zombie_at(place, Arc::new(SystemClock))
}

fn zombie_at(place: &Place, clock: Arc<dyn Clock>) -> Repository {
    let mut zombie = place.open(clock, EXPIRED);
    zombie.owner = Owner::new(None, 0);
    zombie
}

/// A runtime that has observed all leases for long enough.
pub(in crate::repository::diesel) fn observer(place: &Place) -> Repository {
    let mut observer = open(place, LONG);
    observer.observations = Observations::new(Duration::ZERO);
    observer
}

/// Registers this runtime as a worker of the default queue, for the time of its leases.
pub(in crate::repository::diesel) fn register(worker: &Repository) {
    let row = WorkerRow {
        name: String::new(),
        queue: "default".into(),
        slots: 1,
        version: "1".into(),
        is_draining: false,
        started: 0,
        expires: 0,
        is_alive: true,
        partitions: Vec::new(),
    };
    worker.register_worker(&row).unwrap();
}

pub(in crate::repository::diesel) fn claim(repository: &Repository) -> Result<Claim, ClaimError> {
    claim_as(repository, Target::Identified("key".into()), Some(0))
}

fn claim_as(repository: &Repository, target: Target, crash_limit: Option<u32>) -> Result<Claim, ClaimError> {
    repository.claim(&ClaimRequest {
        target,
        parameters: JobParameters::new().with("day", "1"),
        crash_limit,
        ..ClaimRequest::of_new_instance()
    })
}

pub(in crate::repository::diesel) fn execute(repository: &Repository, statements: &str) {
    let mut connection = repository.pool.take().unwrap();
    connection.batch_execute(statements).unwrap();
}

pub(in crate::repository::diesel) fn number(repository: &Repository, query: &str) -> i64 {
    let mut connection = repository.pool.take().unwrap();
    let number = sql::<BigInt>(&format!("CAST(({query}) AS {INTEGER})"));
    diesel::select(number).get_result(&mut connection).unwrap()
}

const EXPIRES_AT: &str = "SELECT EXPIRES_AT FROM BATCH_JOB_INSTANCE_LEASE";

/// An execution whose first step has started.
pub(in crate::repository::diesel) struct StartedJob {
    pub(in crate::repository::diesel) lease: Lease,
    pub(in crate::repository::diesel) job: JobExecution,
    pub(super) step: StepExecution,
}

impl StartedJob {
    pub(in crate::repository::diesel) fn new(repository: &Repository) -> Self {
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

    fn commit(&self, repository: &Repository, renew: Option<&Lease>) -> Result<()> {
        let counters = StepCounters {
            reads: 7,
            writes: 7,
            ..StepCounters::default()
        };
        let mut tx = repository.begin_chunk();
        begin(&mut tx);
        let state = StepState::default();
        let commit = ChunkCommit {
            counters,
            state: &state,
            side_writes: &SideWrites::default(),
            renew,
            end: None,
        };
        repository.commit_chunk(&mut tx, &mut self.step.clone(), commit)
    }
}

type Write = fn(&StartedJob, &Repository) -> Result<()>;

/// All writes of a runner.
const WRITES: [(&str, Write); 9] = [
    ("renew", |started, repository| {
        match repository.renew_lease(&started.lease)? {
            true => Ok(()),
            // A rejected renewal counts as a fence.
            false => Err(RepositoryError::Fenced { action: "renew" }),
        }
    }),
    ("begin_job", |started, repository| {
        repository
            .begin_job(&started.lease, &mut started.job.clone())
            .map(drop)
    }),
    ("create_step", |started, repository| {
        repository
            .create_step(&started.lease, "two", &StepState::default())
            .map(drop)
    }),
    ("begin_step", |started, repository| {
        repository.begin_step(&mut started.step.clone())
    }),
    ("save_element_state", |started, repository| {
        repository.save_element_state(&started.lease, "element", &ElementState::default())
    }),
    ("commit_chunk", |started, repository| {
        started.commit(repository, None)
    }),
    ("commit_and_renew", |started, repository| {
        started.commit(repository, Some(&started.lease))
    }),
    ("end_step", |started, repository| {
        let end = EndOfStep {
            ending: &completed(),
            next: None,
        };
        repository.end_step(
            &started.lease,
            &mut started.step.clone(),
            end,
            Some(&StepState::default()),
            &SideWrites::default(),
        )
    }),
    ("end_job", |started, repository| {
        repository
            .end_job(&started.lease, &mut started.job.clone(), &completed())
            .map(drop)
    }),
];

fn write(name: &str) -> Write {
    WRITES.into_iter().find(|(other, _)| *other == name).unwrap().1
}

pub(super) fn completed() -> Ending {
    Ending::of(BatchStatus::Completed, String::new())
}

pub(super) fn assert_fenced<T: std::fmt::Debug>(name: &str, result: Result<T>) {
    let is_fenced = matches!(result, Err(RepositoryError::Fenced { .. }));
    assert!(is_fenced, "{name}: {result:?}");
}

fn assert_running(refused: Result<Claim, ClaimError>, expected: JobExecutionId) {
    let is_running = matches!(&refused, Err(ClaimError::Running { execution, .. }) if *execution == expected);
    assert!(is_running, "{refused:?}");
}

/// Checks that every write of the loser is rejected and leaves no trace.
fn check_fenced(loser: &Repository, started: &StartedJob) {
    let before = content(loser);
    for (name, write) in WRITES {
        assert_fenced(name, write(started, loser));
        assert_eq!(content(loser), before, "{name}");
    }
}

fn content(repository: &Repository) -> BTreeMap<&'static str, i64> {
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

/// A runtime that slept through a stop, which closed its execution, can write nothing more: before the next claim,
/// after it, and after the end of that one.
// Spec: REPO-15, REPO-17, OP-17, OP-35, STATUS-26
#[test]
fn a_runner_whose_execution_was_closed_by_a_stop_is_fenced() {
    let place = Place::new();
    let (zombie, other) = (zombie(&place), observer(&place));
    let started = StartedJob::new(&zombie);
    let stopped = other.request_stop(started.job.id).unwrap();
    assert_eq!(stopped, Some(StopOutcome::Closed));
    check_fenced(&zombie, &started);
    let mut next = StartedJob::new(&other);
    check_fenced(&zombie, &started);
    assert!(other.end_job(&next.lease, &mut next.job, &completed()).unwrap());
    check_fenced(&zombie, &started);
    let closed = other.job_execution(started.job.id).unwrap().unwrap();
    assert_eq!(closed.status, BatchStatus::Stopped);
}

/// The same before its first step, and before the job has started.
// Spec: REPO-15, OP-17, OP-35
#[test]
fn a_runner_that_was_stopped_before_it_began_is_fenced() {
    let place = Place::new();
    let (zombie, other) = (zombie(&place), observer(&place));
    let Claim {
        mut execution, lease, ..
    } = claim(&zombie).unwrap();
    let stopped = other.request_stop(execution.id).unwrap();
    assert_eq!(stopped, Some(StopOutcome::Closed));
    for _ in 0..2 {
        assert_fenced("begin_job", zombie.begin_job(&lease, &mut execution));
        assert_fenced(
            "create_step",
            zombie.create_step(&lease, "one", &StepState::default()),
        );
        assert_fenced("end_job", zombie.end_job(&lease, &mut execution, &completed()));
        let _ = claim(&other);
    }
}

/// Not by an index, because a job of Spring Batch may repeat a step.
// Spec: REPO-53
#[test]
fn a_job_execution_has_one_execution_of_each_step() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let started = StartedJob::new(&repository);
    let create = |name: &str| repository.create_step(&started.lease, name, &StepState::default());
    let error = create("one").unwrap_err().to_string();
    assert!(error.contains("is already the one of step `one`"), "{error}");
    create("two").unwrap();
}

// Spec: REPO-15, OP-34, OP-35
#[test]
fn a_runner_that_was_taken_over_is_fenced() {
    let place = Place::new();
    let (zombie, other) = (zombie(&place), observer(&place));
    let started = StartedJob::new(&zombie);
    let next = StartedJob::new(&other);
    check_fenced(&zombie, &started);
    // Starting the job is not fenced.
    for name in [
        "renew",
        "create_step",
        "begin_step",
        "save_element_state",
        "end_job",
    ] {
        assert!(write(name)(&next, &other).is_ok(), "{name}");
    }
}

/// An owner that claims twice: the fence distinguishes its leases.
// Spec: REPO-15, OP-35
#[test]
fn an_owner_cannot_use_its_own_older_lease() {
    let place = Place::new();
    let repository = open(&place, EXPIRED);
    let older = StartedJob::new(&repository);
    let newer = StartedJob::new(&repository);
    assert_ne!(older.lease.fence, newer.lease.fence);
    check_fenced(&repository, &older);
    assert!(repository.renew_lease(&newer.lease).unwrap());
    repository.release_lease(&older.lease).unwrap();
    assert!(
        repository.renew_lease(&newer.lease).unwrap(),
        "released by its predecessor"
    );
}

/// A deleted lease starts again with fence 1; the owner distinguishes it from the one before.
// Spec: REPO-15, OP-35
#[test]
fn a_lease_with_the_same_fence_belongs_to_its_owner() {
    let place = Place::new();
    let (loser, winner, third) = (open(&place, LONG), open(&place, LONG), open(&place, LONG));
    let lost = StartedJob::new(&loser);
    execute(
        &loser,
        "DELETE FROM BATCH_JOB_INSTANCE_LEASE; DELETE FROM BATCH_STEP_EXECUTION_CONTEXT; DELETE FROM BATCH_STEP_EXECUTION;
         UPDATE BATCH_JOB_EXECUTION SET STATUS = 'FAILED', VERSION = VERSION + 1",
    );
    let held = StartedJob::new(&winner);
    assert_eq!(lost.lease.fence, held.lease.fence);
    check_fenced(&loser, &lost);
    loser.release_lease(&lost.lease).unwrap();
    assert!(matches!(claim(&third), Err(ClaimError::Running { .. })));
}

/// Only the lease changes: the rows are as the runner left them.
// Spec: REPO-15, OP-35
#[test]
fn a_lost_lease_is_noticed_without_a_change_of_the_rows() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let started = StartedJob::new(&repository);
    execute(
        &repository,
        "UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = FENCE + 1",
    );
    let before = content(&repository);
    for name in ["renew", "create_step", "commit_and_renew", "end_job"] {
        assert_fenced(name, write(name)(&started, &repository));
        assert_eq!(content(&repository), before, "{name}");
    }
}

// Spec: OP-35
#[test]
fn a_renewal_moves_the_expiry() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let started = StartedJob::new(&repository);
    let expire = "UPDATE BATCH_JOB_INSTANCE_LEASE SET EXPIRES_AT = 0";
    let is_held = || {
        let mut connection = repository.pool.take().unwrap();
        let now: i64 = diesel::select(Db::now()).get_result(&mut connection).unwrap();
        number(&repository, EXPIRES_AT) > now
    };
    assert!(is_held());
    execute(&repository, expire);
    assert!(repository.renew_lease(&started.lease).unwrap() && is_held());
    execute(&repository, expire);
    started.commit(&repository, Some(&started.lease)).unwrap();
    assert!(is_held(), "a commit with a renewal of the lease");
}

// Spec: OP-35
#[test]
fn a_released_lease_can_be_acquired_at_once() {
    let place = Place::new();
    let (one, other) = (open(&place, LONG), open(&place, LONG));
    let started = StartedJob::new(&one);
    assert_running(claim(&other), started.job.id);
    one.release_lease(&started.lease).unwrap();
    assert_eq!(claim(&other).unwrap().taken_over, [started.job.id]);
    check_fenced(&one, &started);
}

/// The lease decides who runs an instance, not a status that an operator set by hand.
// Spec: OP-34, OP-35
#[test]
fn a_held_lease_counts_more_than_the_status() {
    let place = Place::new();
    let (one, other) = (open(&place, LONG), open(&place, LONG));
    let started = StartedJob::new(&one);
    for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
        let close =
            format!("UPDATE {table} SET STATUS = 'FAILED', END_TIME = LAST_UPDATED, VERSION = VERSION + 1");
        execute(&one, &close);
    }
    assert_running(claim(&other), started.job.id);
    one.release_lease(&started.lease).unwrap();
    claim(&other).unwrap();
}

/// A takeover by a process whose clock is behind the dead owner's, and a stop that closes.
// Spec: REPO-42, REPO-43, REPO-50, OP-35
#[test]
fn an_execution_closed_for_a_dead_owner_does_not_end_before_its_start() {
    type Close = fn(&Repository, &StartedJob);
    let close: [Close; 2] = [
        |other, _| drop(claim(other).unwrap()),
        |other, started| {
            assert_eq!(
                other.request_stop(started.job.id).unwrap(),
                Some(StopOutcome::Closed)
            )
        },
    ];
    for close in close {
        let place = Place::new();
        let ahead = zombie_at(&place, Arc::new(FixedClock(2_000_000)));
        let mut behind = observer(&place);
        behind.clock = Arc::new(FixedClock(1_000));
        let started = StartedJob::new(&ahead);
        close(&behind, &started);
        let job = behind.job_execution(started.job.id).unwrap().unwrap();
        assert!(job.ended.is_some() && job.ended >= job.started, "{job:?}");
        let step = &behind.step_executions(started.job.id).unwrap()[0];
        assert!(step.ended.is_some_and(|ended| ended >= step.started), "{step:?}");
    }
}

/// The clock of the host is set back between the creation of an execution and its start, or its end.
// Spec: REPO-42, REPO-43
#[test]
fn an_execution_does_not_start_or_end_before_its_creation() {
    let place = Place::new();
    let mut repository = zombie_at(&place, Arc::new(FixedClock(2_000_000)));
    let Claim {
        mut execution, lease, ..
    } = claim(&repository).unwrap();
    let mut never_started = execution.clone();
    repository.clock = Arc::new(FixedClock(1_000));
    assert!(repository.begin_job(&lease, &mut execution).unwrap());
    let stored = repository.job_execution(execution.id).unwrap().unwrap();
    assert!(stored.started >= Some(stored.created), "{stored:?}");

    never_started.version = execution.version;
    let ending = Ending::of(BatchStatus::Failed, String::new());
    repository.end_job(&lease, &mut never_started, &ending).unwrap();
    let stored = repository.job_execution(execution.id).unwrap().unwrap();
    assert!(stored.ended >= Some(stored.created), "{stored:?}");
}

/// A statement that fails and rolls back the transaction, on each table in turn: its own error is reported, not the
/// error of a following ROLLBACK.
// Spec: REPO-16
#[test]
fn the_true_cause_of_a_failed_write_is_shown() {
    let check = |event: &str, table: &str, write: Write| {
        let place = Place::new();
        let repository = open(&place, LONG);
        let started = StartedJob::new(&repository);
        execute(&repository, &refusal(event, table));
        let error = write(&started, &repository).unwrap_err().to_string();
        assert!(error.contains("the true cause"), "{event} {table}: {error}");
        // Nothing remains locked or open.
        execute(&repository, &end_of_refusal(table));
        execute(&repository, "UPDATE BATCH_JOB_INSTANCE SET VERSION = VERSION");
        assert!(write(&started, &repository).is_ok(), "{event} {table}");
    };
    check("UPDATE", "BATCH_JOB_EXECUTION", write("begin_job"));
    check("UPDATE", "BATCH_JOB_EXECUTION", write("end_job"));
    check("UPDATE", "BATCH_JOB_EXECUTION", |started, repository| {
        repository.request_stop(started.job.id).map(drop)
    });
    check("UPDATE", "BATCH_JOB_INSTANCE_LEASE", write("renew"));
    check("UPDATE", "BATCH_JOB_INSTANCE_LEASE", write("end_job"));
    check("UPDATE", "BATCH_JOB_INSTANCE_LEASE", write("commit_and_renew"));
    check("UPDATE", "BATCH_JOB_INSTANCE_LEASE", |started, repository| {
        repository.release_lease(&started.lease)
    });
    check("INSERT", "BATCH_STEP_EXECUTION", write("create_step"));
    check("INSERT", "BATCH_STEP_EXECUTION_CONTEXT", write("create_step"));
    check("UPDATE", "BATCH_STEP_EXECUTION", write("begin_step"));
    check("UPDATE", "BATCH_STEP_EXECUTION", write("commit_chunk"));
    check("UPDATE", "BATCH_STEP_EXECUTION", write("end_step"));
    check("UPDATE", "BATCH_STEP_EXECUTION_CONTEXT", write("commit_chunk"));
    check("UPDATE", "BATCH_STEP_EXECUTION_CONTEXT", write("end_step"));
}

/// The same for a claim, which writes most tables.
// Spec: REPO-86
#[test]
fn the_true_cause_of_a_failed_claim_is_shown() {
    for table in [
        "BATCH_JOB_INSTANCE",
        "BATCH_JOB_EXECUTION",
        "BATCH_JOB_EXECUTION_PARAMS",
        "BATCH_JOB_EXECUTION_CONTEXT",
        "BATCH_JOB_INSTANCE_LEASE",
    ] {
        let place = Place::new();
        let repository = open(&place, LONG);
        execute(&repository, &refusal("INSERT", table));
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

/// A partition that was dispatched twice is claimed once.
// Spec: PART-32, REPO-15
#[test]
fn a_step_is_claimed_once() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let started = StartedJob::new(&repository);
    let created = repository
        .create_step(&started.lease, "two:1", &StepState::default())
        .unwrap();
    assert!(repository.withhold_partition(created.id).unwrap());
    let (claimed, state) = repository.step(created.id).unwrap().unwrap();
    assert_eq!((claimed.status, claimed.version), (BatchStatus::Started, 1));
    assert_eq!(state, StepState::default());
    assert!(!repository.withhold_partition(created.id).unwrap());
    assert!(!repository.withhold_partition(StepExecutionId(77)).unwrap());
}

/// Automatic recovery requires that the execution is still dead, and not stopped or taken over since it was read. A
/// restart by hand does not.
// Spec: OP-35
#[test]
fn only_dead_executions_are_recovered_automatically() {
    let place = Place::new();
    let (dead, other) = (zombie(&place), observer(&place));
    let by_itself = |execution| claim_as(&other, Target::InstanceOf(execution), Some(0)).map(drop);
    let first = StartedJob::new(&dead).job.id;
    assert_eq!(other.request_stop(first).unwrap(), Some(StopOutcome::Closed));
    assert!(matches!(by_itself(first), Err(ClaimError::TakenOver)));
    let second = claim_as(&dead, Target::InstanceOf(first), None)
        .unwrap()
        .execution
        .id;
    assert!(
        matches!(by_itself(first), Err(ClaimError::TakenOver)),
        "not the last one"
    );
    by_itself(second).unwrap();
}

/// Instances are deleted only as they were read: not if they are running, or have run again since.
#[test]
fn an_instance_that_has_run_again_is_not_deleted() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let seen = || repository.instance_states(None, JobInstanceId(0), 10).unwrap();
    let run = |ending: &Ending| {
        let mut started = StartedJob::new(&repository);
        assert_eq!(seen()[0].status, None, "it runs");
        assert_eq!(repository.delete_instances(&seen()).unwrap(), 0);
        let end = EndOfStep { ending, next: None };
        repository
            .end_step(
                &started.lease,
                &mut started.step,
                end,
                None,
                &SideWrites::default(),
            )
            .unwrap();
        assert!(
            repository
                .end_job(&started.lease, &mut started.job, ending)
                .unwrap()
        );
    };
    run(&Ending::of(BatchStatus::Failed, String::new()));
    let failed = seen();
    assert_eq!(failed[0].status, Some(BatchStatus::Failed));
    run(&completed());
    assert_eq!(repository.delete_instances(&failed).unwrap(), 0);
    assert_eq!(seen()[0].status, Some(BatchStatus::Completed));
    assert_eq!(repository.delete_instances(&seen()).unwrap(), 1);
    for table in [
        "JOB_INSTANCE",
        "JOB_INSTANCE_LEASE",
        "JOB_EXECUTION",
        "JOB_EXECUTION_PARAMS",
        "JOB_EXECUTION_CONTEXT",
        "STEP_EXECUTION",
        "STEP_EXECUTION_CONTEXT",
    ] {
        let rows = number(&repository, &format!("SELECT COUNT(*) FROM BATCH_{table}"));
        assert_eq!(rows, 0, "{table}");
    }
}
