//! The queue of notifications on each database.

use std::sync::Barrier;
use std::time::Duration;

use super::super::fixture::{Place, end_of_refusal, refusal};
use super::tests::{execute, open};
use super::*;
use crate::clock::Timestamp;
use crate::deadline::Deadline;
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::notify::{NotificationDetail, NotificationEvent, NotificationRules, NotificationTarget};
use crate::repository::{
    Claim, ClaimError, ClaimRequest, Concurrency, Ending, JobStore, NewNotification, NextNotification,
    NotificationStore, OperatorStore, Target,
};
use crate::status::BatchStatus;

const LONG: Duration = Duration::from_secs(3_600);

fn new(target: &str, execution: i64, detail: &NotificationDetail) -> NewNotification {
    let (instance, execution) = (JobInstanceId(1), JobExecutionId(execution));
    NewNotification::now(
        target,
        NotificationEvent::Skipped,
        "job",
        instance,
        execution,
        detail,
    )
}

/// Returns the execution of the next notification, which is due.
fn take(repository: &Repository) -> Option<i64> {
    match repository.take_notification("ops", LONG).unwrap() {
        NextNotification::Due(taken) => Some(taken.execution.0),
        NextNotification::In(_) | NextNotification::None => None,
    }
}

// Spec: NOTIFY-02, NOTIFY-04
#[test]
fn a_notification_waits_until_it_is_delivered() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let detail = NotificationDetail {
        step: Some("löad".into()),
        skipped: Some(7),
        ..NotificationDetail::default()
    };
    let [of_ops, of_others] = ["ops", "others"].map(|target| new(target, 1, &detail));
    repository
        .queue_notifications(&[of_ops.clone(), of_others])
        .unwrap();
    let NextNotification::Due(taken) = repository.take_notification("ops", LONG).unwrap() else {
        panic!("it is due");
    };
    assert_eq!(
        (taken.id.as_str(), taken.attempts, &taken.detail),
        (of_ops.id.as_str(), 0, &detail)
    );
    assert_eq!(take(&repository), None, "it is being sent");
    repository.retry_notifications("ops").unwrap();
    assert_eq!(take(&repository), Some(1), "an operator sends it now");
    repository
        .postpone_notification(&of_ops.id, Duration::from_secs(60), "no route")
        .unwrap();
    let NextNotification::In(wait) = repository.take_notification("ops", LONG).unwrap() else {
        panic!("it is due later");
    };
    assert!(wait <= Duration::from_secs(60), "{wait:?}");
    let all = repository.notifications().unwrap();
    let shown = |target: &str| {
        let mut all = all.iter();
        let one = all.find(|one| one.target == target).unwrap();
        (one.attempts, one.last_error.clone())
    };
    assert_eq!(shown("ops"), (2, Some("no route".into())));
    assert_eq!(shown("others"), (0, None));
    repository.forget_notification(&of_ops.id).unwrap();
    let left = repository.take_notification("ops", LONG).unwrap();
    assert!(matches!(left, NextNotification::None), "{left:?}");
}

// Spec: NOTIFY-07
#[test]
fn a_deadline_is_due_at_its_time() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let at = |time: i64| NotificationDetail {
        deadline: Some(crate::clock::Timestamp(time)),
        ..NotificationDetail::default()
    };
    let new = [new("ops", 1, &at(i64::MAX / 2)), new("ops", 2, &at(1_000))];
    repository.queue_notifications(&new).unwrap();
    assert_eq!(take(&repository), Some(2));
    assert_eq!(take(&repository), None);
}

/// A newer version may have written the rows.
// Spec: NOTIFY-04
#[test]
fn a_notification_that_cannot_be_read_blocks_no_other() {
    let place = Place::new();
    let repository = open(&place, LONG);
    let detail = NotificationDetail::default();
    let all = [1, 2, 3].map(|execution| new("ops", execution, &detail));
    repository.queue_notifications(&all).unwrap();
    execute(
        &repository,
        "UPDATE BATCH_NOTIFICATION SET EVENT = 'postponed', DUE_AT = 0 WHERE JOB_EXECUTION_ID = 1;
         UPDATE BATCH_NOTIFICATION SET DETAIL = 'step', DUE_AT = 1 WHERE JOB_EXECUTION_ID = 2;",
    );
    let damaged = repository.take_notification("ops", LONG).unwrap();
    let NextNotification::Due(damaged) = damaged else {
        panic!("it is due");
    };
    let message = damaged.detail.message.unwrap();
    assert_eq!(damaged.execution.0, 2);
    assert!(
        message.starts_with("the detail of the notification cannot be read: "),
        "{message}"
    );
    assert_eq!((take(&repository), take(&repository)), (Some(3), None));
    assert_eq!(repository.notifications().unwrap().len(), 2);
}

/// Returns a repository whose target `ops` has this event.
fn notifying(place: &Place, event: NotificationEvent) -> Repository {
    with_target(place, "ops", event)
}

fn with_target(place: &Place, name: &str, event: NotificationEvent) -> Repository {
    let mut repository = open(place, LONG);
    repository.notifications = NotificationRules::new(&[NotificationTarget::queued(name).on([event])]);
    repository
}

fn claim_by(repository: &Repository, deadline: Timestamp) -> Claim {
    repository.claim(&request(deadline)).unwrap()
}

fn request(deadline: Timestamp) -> ClaimRequest<'static> {
    ClaimRequest {
        target: Target::Identified("key".into()),
        deadline: Some(Deadline::At(deadline)),
        crash_limit: Some(0),
        ..ClaimRequest::of_new_instance()
    }
}

fn end(repository: &Repository, claim: Claim, status: BatchStatus) -> JobExecution {
    let Claim {
        lease, mut execution, ..
    } = claim;
    let ending = Ending::of(status, String::new());
    assert!(repository.end_job(&lease, &mut execution, &ending).unwrap());
    execution
}

/// Nothing may have been able to send it before.
// Spec: NOTIFY-02, NOTIFY-07
#[test]
fn the_end_of_an_instance_removes_only_a_deadline_that_has_not_come() {
    let pending = |deadline: Timestamp, is_tried: bool| {
        let place = Place::new();
        let repository = notifying(&place, NotificationEvent::Overdue);
        let claim = claim_by(&repository, deadline);
        if is_tried {
            assert_eq!(take(&repository), Some(claim.execution.id.0));
        }
        end(&repository, claim, BatchStatus::Completed);
        repository.notifications().unwrap().len()
    };
    assert_eq!(pending(Timestamp(i64::MAX / 2), false), 0);
    assert_eq!(pending(Timestamp(1_000), false), 1);
    // It is to be repeated later.
    assert_eq!(pending(Timestamp(1_000), true), 1);
}

/// A restart replaces the deadline of its own target, or removes it if the job no longer has one.
// Spec: NOTIFY-07
#[test]
fn a_restart_keeps_the_deadlines_of_other_targets() {
    let place = Place::new();
    // In the year 2096.
    let far = |day: i64| Timestamp(4_000_000_000_000 + day);
    let targets = |repository: &Repository| -> Vec<(String, Option<Timestamp>)> {
        let all = repository.notifications().unwrap().into_iter();
        all.map(|one| (one.target, one.detail.deadline)).collect()
    };
    let of_ops = notifying(&place, NotificationEvent::Overdue);
    let claim = claim_by(&of_ops, far(1));
    end(&of_ops, claim, BatchStatus::Failed);
    let of_pager = with_target(&place, "pager", NotificationEvent::Overdue);
    let claim = claim_by(&of_pager, far(2));
    end(&of_pager, claim, BatchStatus::Failed);
    let (ops, pager) = (
        ("ops".to_owned(), Some(far(1))),
        ("pager".to_owned(), Some(far(2))),
    );
    assert_eq!(targets(&of_ops), [ops.clone(), pager]);
    let without = ClaimRequest {
        deadline: None,
        ..request(far(3))
    };
    of_pager.claim(&without).unwrap();
    assert_eq!(targets(&of_ops), [ops]);
}

/// One cannot be recorded without the other.
// Spec: NOTIFY-02
#[test]
fn an_end_is_rolled_back_with_its_notification() {
    let place = Place::new();
    let repository = notifying(&place, NotificationEvent::Completed);
    let Claim {
        lease, mut execution, ..
    } = claim_by(&repository, Timestamp(i64::MAX / 2));
    let ending = Ending::of(BatchStatus::Completed, String::new());
    execute(&repository, &refusal("INSERT", "BATCH_NOTIFICATION"));
    repository.end_job(&lease, &mut execution, &ending).unwrap_err();
    execute(&repository, &end_of_refusal("BATCH_NOTIFICATION"));
    let recorded = repository.job_execution(execution.id).unwrap().unwrap();
    assert_eq!(recorded.status, BatchStatus::Starting);
    repository.end_job(&lease, &mut execution, &ending).unwrap();
    assert_eq!(take(&repository), Some(execution.id.0));
}

/// Another instance of the job waits for it.
// Spec: NOTIFY-02, TURN-02
#[test]
fn a_dead_execution_that_had_the_turn_has_failed() {
    let place = Place::new();
    let repository = notifying(&place, NotificationEvent::Failed);
    let claim_of = |key: &str| {
        repository.claim(&ClaimRequest {
            target: Target::Identified(key.into()),
            concurrency: Concurrency::One,
            ..request(Timestamp(i64::MAX / 2))
        })
    };
    let dead = claim_of("one").unwrap();
    repository.release_lease(&dead.lease).unwrap();
    let Err(ClaimError::NotItsTurn { execution }) = claim_of("other") else {
        panic!("the dead one has the turn");
    };
    assert_eq!(
        repository.pass_turn(execution).unwrap(),
        Some(vec![dead.execution.id])
    );
    assert_eq!(take(&repository), Some(dead.execution.id.0));
    // Another process may have been faster.
    assert_eq!(repository.pass_turn(execution).unwrap(), Some(Vec::new()));
}

/// The execution that is abandoned is not the dead one.
// Spec: NOTIFY-02
#[test]
fn what_an_abandoned_instance_closes_has_failed() {
    let place = Place::new();
    let repository = notifying(&place, NotificationEvent::Failed);
    let never = Timestamp(i64::MAX / 2);
    let failed = end(&repository, claim_by(&repository, never), BatchStatus::Failed);
    assert_eq!(take(&repository), Some(failed.id.0));
    let dead = claim_by(&repository, never);
    repository.release_lease(&dead.lease).unwrap();
    repository.abandon(failed.id).unwrap();
    assert_eq!(take(&repository), Some(dead.execution.id.0));
}

// Spec: NOTIFY-04
#[test]
fn one_of_two_processes_sends_a_notification() {
    const EACH: i64 = 20;
    let place = Place::new();
    let runtimes = [open(&place, LONG), open(&place, LONG)];
    let new: Vec<_> = (0..EACH)
        .map(|execution| new("ops", execution, &NotificationDetail::default()))
        .collect();
    runtimes[0].queue_notifications(&new).unwrap();
    let start = Barrier::new(2);
    let mut taken: Vec<i64> = std::thread::scope(|scope| {
        let threads = runtimes.each_ref().map(|runtime| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                let mut taken = Vec::new();
                loop {
                    match runtime.take_notification("ops", LONG).unwrap() {
                        NextNotification::Due(one) => taken.push(one.execution.0),
                        // The other one was faster.
                        NextNotification::In(Duration::ZERO) => {}
                        _ => return taken,
                    }
                }
            })
        });
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    taken.sort_unstable();
    assert_eq!(taken, (0..EACH).collect::<Vec<_>>());
}
