//! Two owners that write at the same moment: one comes first, and the other detects it.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::super::fixture::Place;
use super::tests::{StartedJob, claim, number, observer, open, zombie};
use super::*;
use crate::ids::JobInstanceId;
use crate::repository::{
    ArchiveStore, Ending, InsertStep, JobStore, OperatorStore, PartitionStore, StepState, StopOutcome,
};
use crate::status::BatchStatus;

const ROUNDS: usize = 20;
const LONG: Duration = Duration::from_secs(3_600);

fn failed() -> Ending {
    Ending::of(BatchStatus::Failed, String::new())
}

/// A runner that slept starts steps while its execution is closed: each is either closed too, or rejected. An open
/// step under a closed execution would never end.
// Spec: OP-34, OP-35, REPO-15, REPO-16
#[test]
fn no_step_starts_under_a_closed_execution() {
    let place = Place::new();
    let (zombie, other) = (zombie(&place), observer(&place));
    for round in 0..ROUNDS {
        let started = StartedJob::new(&zombie);
        let together = Barrier::new(3);
        let next = thread::scope(|scope| {
            for thread in 0..2 {
                let (started, zombie, together) = (&started, &zombie, &together);
                scope.spawn(move || {
                    together.wait();
                    for step in 0.. {
                        let name = format!("{round} {thread} {step}");
                        if let Err(error) = zombie.create_step(&started.lease, &name, &StepState::default()) {
                            assert!(matches!(error, RepositoryError::Fenced { .. }), "{error}");
                            break;
                        }
                    }
                });
            }
            together.wait();
            claim(&other).unwrap()
        });
        assert_eq!(next.taken_over, [started.job.id]);
        let open_steps = "SELECT COUNT(*) FROM BATCH_STEP_EXECUTION WHERE STATUS IN ('STARTING', 'STARTED')";
        assert_eq!(number(&other, open_steps), 0, "round {round}");
        other.release_lease(&next.lease).unwrap();
    }
}

/// A partition that was dispatched many times runs once.
// Spec: PART-32, REPO-15, REPO-16
#[test]
fn one_of_many_claims_a_step() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let started = StartedJob::new(&repository);
    for round in 0..ROUNDS {
        let name = format!("one:{round}");
        let step = repository
            .create_step(&started.lease, &name, &StepState::default())
            .unwrap();
        let together = Barrier::new(8);
        let claims = thread::scope(|scope| {
            let claim = || {
                together.wait();
                repository.withhold_partition(step.id).unwrap()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
            let won = threads.into_iter().map(|thread| thread.join().unwrap());
            won.filter(|won| *won).count()
        });
        assert_eq!(claims, 1, "round {round}");
    }
}

/// An execution ends while an operator requests a stop: the request comes too late, or the runner sees it.
// Spec: OP-17, REPO-15, REPO-17, STATUS-26
#[test]
fn a_stop_request_is_seen_or_comes_too_late() {
    let place = Place::new();
    let (runner, other) = (open(&place, LONG), open(&place, LONG));
    for round in 0..ROUNDS {
        let mut started = StartedJob::new(&runner);
        let id = started.job.id;
        let together = Barrier::new(2);
        let (ended, requested) = thread::scope(|scope| {
            let ended = scope.spawn(|| {
                together.wait();
                runner
                    .end_job(&started.lease, &mut started.job, &failed())
                    .unwrap()
            });
            together.wait();
            let requested = other.request_stop(id).unwrap().unwrap();
            (ended.join().unwrap(), requested)
        });
        let job = other.job_execution(started.job.id).unwrap().unwrap();
        let expected = if ended {
            (StopOutcome::NotRunning, BatchStatus::Failed)
        } else {
            (StopOutcome::Requested, BatchStatus::Stopping)
        };
        assert_eq!((requested, job.status), expected, "round {round}");
        if !ended {
            assert!(
                runner
                    .end_job(&started.lease, &mut started.job, &failed())
                    .unwrap()
            );
        }
    }
}

/// An instance is deleted while it is launched: the launch resumes it, or creates it again.
// Spec: OP-34, OP-36
#[test]
fn a_launch_of_an_instance_that_is_being_deleted_finds_or_creates_it() {
    let place = Place::new();
    let (operator, launcher) = (open(&place, LONG), open(&place, LONG));
    for round in 0..ROUNDS {
        let first = claim(&launcher).unwrap();
        let mut execution = first.execution;
        assert!(launcher.end_job(&first.lease, &mut execution, &failed()).unwrap());
        let seen = operator.instance_states(None, JobInstanceId(0), 10).unwrap();
        let together = Barrier::new(2);
        let (deleted, launched) = thread::scope(|scope| {
            let deleted = scope.spawn(|| {
                together.wait();
                operator.delete_instances(&seen).unwrap()
            });
            together.wait();
            let launched = claim(&launcher).unwrap();
            (deleted.join().unwrap(), launched)
        });
        let is_same = launched.lease.instance_id == first.lease.instance_id;
        assert_eq!(is_same, deleted == 0, "round {round}");
        let mut execution = launched.execution;
        assert!(
            launcher
                .end_job(&launched.lease, &mut execution, &failed())
                .unwrap()
        );
    }
}

/// An execution that has ended keeps its message, although its lease names its last owner.
// Spec: OP-35
#[test]
fn the_exit_of_a_process_is_not_that_of_its_ended_executions() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let StartedJob { lease, mut job, .. } = StartedJob::new(&repository);
    repository.end_job(&lease, &mut job, &failed()).unwrap();
    let version = || number(&repository, "SELECT VERSION FROM BATCH_JOB_EXECUTION");
    let before = version();
    repository.record_exit("the process exits").unwrap();
    assert_eq!(version(), before);
}
