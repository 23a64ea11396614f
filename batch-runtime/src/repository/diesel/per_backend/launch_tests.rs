//! Launches that two workers want.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::super::fixture::Place;
use super::tests::{execute, number, observer, register, zombie};
use super::*;
use crate::ids::LaunchId;
use crate::parameters::JobParameters;
use crate::repository::{
    Claim, ClaimError, ClaimRequest, Ending, JobStore, LaunchPhase, LaunchStore, QueueStore, Target,
};
use crate::status::BatchStatus;

const QUEUE: &str = "default";
const EXECUTIONS: &str = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION";

fn request(launch: Option<LaunchId>) -> ClaimRequest<'static> {
    let parameters = JobParameters::new().with("day", "1");
    ClaimRequest {
        launch,
        target: Target::Identified(parameters.job_key()),
        parameters,
        crash_limit: Some(0),
        ..ClaimRequest::of_new_instance()
    }
}

fn take(worker: &Repository) -> Option<LaunchId> {
    let taken = worker.take_launches(QUEUE, 1, &[]).unwrap();
    taken.into_iter().next().map(|taken| {
        assert_eq!(taken.parameters, Ok(request(None).parameters));
        taken.id
    })
}

/// Takes the launch that the first worker, whose registration has expired, has taken.
fn take_from_the_dead(place: &Place, first: &Repository) -> (Repository, LaunchId) {
    register(first);
    let id = first.submit_launch(&request(None), QUEUE, "f").unwrap();
    assert_eq!(take(first), Some(id));
    let second = observer(place);
    register(&second);
    loop {
        // Its registration expires when the clock of the database goes on.
        if let Some(taken) = take(&second) {
            assert_eq!(taken, id);
            return (second, id);
        }
    }
}

/// A worker that has lost its launch, for example because it was suspended, does not run it.
// Spec: DISP-15
#[test]
fn a_launch_that_was_taken_over_is_not_run() {
    let place = Place::new();
    let first = zombie(&place);
    let (second, id) = take_from_the_dead(&place, &first);
    let refused = first.claim(&request(Some(id)));
    assert!(matches!(refused, Err(ClaimError::TakenOver)), "{refused:?}");
    assert_eq!(number(&second, EXECUTIONS), 0);
    assert!(!first.requeue_launch(id, Duration::ZERO, "", false).unwrap());
    first.end_launch(id, LaunchPhase::Rejected, None, "late").unwrap();
    let Claim { execution, .. } = second.claim(&request(Some(id))).unwrap();
    let listed = second.launches().unwrap();
    assert_eq!(listed[0].phase, LaunchPhase::Taken);
    assert_eq!(listed[0].execution, Some((execution.id, BatchStatus::Starting)));
}

/// A worker may die between the end of its job and the end of the launch.
// Spec: DISP-15
#[test]
fn a_launch_whose_job_has_ended_does_not_run_again() {
    let place = Place::new();
    let first = zombie(&place);
    let (second, id) = take_from_the_dead(&place, &first);
    let Claim {
        mut execution, lease, ..
    } = second.claim(&request(Some(id))).unwrap();
    assert!(second.begin_job(&lease, &mut execution).unwrap());
    let failed = Ending::of(BatchStatus::Failed, "a bad record".into());
    assert!(second.end_job(&lease, &mut execution, &failed).unwrap());
    second.deregister_worker().unwrap();
    assert_eq!(take(&first), None);
    let listed = first.launches().unwrap();
    assert_eq!(listed[0].phase, LaunchPhase::Ended);
    assert_eq!(listed[0].execution, Some((execution.id, BatchStatus::Failed)));
    // Launched again, it gets another id.
    let again = first.submit_launch(&request(None), QUEUE, "f").unwrap();
    assert_ne!(again, id);
}

/// A worker may die after it has taken the launch of a drained one, and before it runs the job.
// Spec: DISP-15
#[test]
fn a_launch_does_not_end_with_an_execution_that_was_drained() {
    let place = Place::new();
    let first = zombie(&place);
    register(&first);
    let id = first.submit_launch(&request(None), QUEUE, "f").unwrap();
    assert_eq!(take(&first), Some(id));
    let Claim {
        mut execution, lease, ..
    } = first.claim(&request(Some(id))).unwrap();
    assert!(first.begin_job(&lease, &mut execution).unwrap());
    assert!(first.requeue_launch(id, Duration::ZERO, "drained", true).unwrap());
    let stopped = Ending::of(BatchStatus::Stopped, String::new());
    assert!(first.end_job(&lease, &mut execution, &stopped).unwrap());
    let second = observer(&place);
    register(&second);
    assert_eq!(take(&second), Some(id));
    second.deregister_worker().unwrap();
    assert_eq!(take(&first), Some(id));
    assert_eq!(first.launches().unwrap()[0].execution, None);
}

/// A worker that does not run the job hands its launch back, even if an execution of an earlier worker was requested to stop.
// Spec: DISP-15
#[test]
fn a_stopping_execution_keeps_only_the_launch_that_runs_it() {
    let place = Place::new();
    let worker = zombie(&place);
    register(&worker);
    let id = worker.submit_launch(&request(None), QUEUE, "f").unwrap();
    assert_eq!(take(&worker), Some(id));
    let Claim {
        mut execution, lease, ..
    } = worker.claim(&request(Some(id))).unwrap();
    assert!(worker.begin_job(&lease, &mut execution).unwrap());
    execute(
        &worker,
        "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'STOPPING', VERSION = VERSION + 1",
    );
    assert!(
        !worker
            .requeue_launch(id, Duration::ZERO, "drained", true)
            .unwrap()
    );
    assert_eq!(worker.launches().unwrap()[0].phase, LaunchPhase::Taken);
    assert!(worker.requeue_launch(id, Duration::ZERO, "later", false).unwrap());
    let listed = worker.launches().unwrap();
    assert_eq!(
        (listed[0].phase, listed[0].execution),
        (LaunchPhase::Queued, None)
    );
}

/// A launch can be withdrawn until a worker has started its job.
// Spec: DISP-15
#[test]
fn a_launch_that_was_taken_and_does_not_run_is_withdrawn() {
    let place = Place::new();
    let worker = observer(&place);
    register(&worker);
    let id = worker.submit_launch(&request(None), QUEUE, "f").unwrap();
    assert_eq!(take(&worker), Some(id));
    let withdrawn = worker.withdraw_launch(id).unwrap();
    assert!(matches!(withdrawn, crate::repository::WithdrawOutcome::Withdrawn));
    let refused = worker.claim(&request(Some(id)));
    assert!(matches!(refused, Err(ClaimError::TakenOver)), "{refused:?}");
    assert_eq!(number(&worker, EXECUTIONS), 0);
}

/// Several schedulers launch the same instance at the same moment.
// Spec: DISP-15
#[test]
fn an_instance_is_queued_once() {
    let place = Place::new();
    let schedulers: Vec<Repository> = (0..6).map(|_| observer(&place)).collect();
    let first = &schedulers[0];
    for _ in 0..10 {
        let begin = Barrier::new(schedulers.len());
        let ids: BTreeSet<LaunchId> = thread::scope(|scope| {
            let submit = |scheduler| {
                let begin = &begin;
                scope.spawn(move || {
                    begin.wait();
                    Repository::submit_launch(scheduler, &request(None), QUEUE, "f").unwrap()
                })
            };
            let threads: Vec<_> = schedulers.iter().map(submit).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 1, "{ids:?}");
        let id = *ids.first().unwrap();
        assert!(matches!(
            first.withdraw_launch(id).unwrap(),
            crate::repository::WithdrawOutcome::Withdrawn
        ));
    }
}

/// A launch is listed for a week after its end; one that waits is never forgotten.
// Spec: DISP-15
#[test]
fn launches_are_forgotten_a_week_after_their_end() {
    let place = Place::new();
    let first = observer(&place);
    let submit = || first.submit_launch(&request(None), QUEUE, "f").unwrap();
    let a_week_ago = |launch: LaunchId| {
        let change = "UPDATE BATCH_LAUNCH SET CHANGED_AT = CHANGED_AT - 604801000 WHERE LAUNCH_ID =";
        execute(&first, &format!("{change} {launch}"));
    };
    let ended = || {
        let launch = submit();
        first.withdraw_launch(launch).unwrap();
        launch
    };
    let (old, new) = (ended(), ended());
    a_week_ago(old);
    let waiting = submit();
    a_week_ago(waiting);
    assert_eq!(submit(), waiting);
    let mut listed: Vec<LaunchId> = first.launches().unwrap().iter().map(|launch| launch.id).collect();
    listed.sort_unstable();
    assert_eq!(listed, [new, waiting]);
}
