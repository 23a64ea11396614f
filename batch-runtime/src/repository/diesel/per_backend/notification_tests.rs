//! The queue of notifications on each database.

use std::sync::Barrier;
use std::time::Duration;

use super::super::fixture::Place;
use super::tests::open;
use super::*;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::notify::{NotificationDetail, NotificationEvent};
use crate::repository::{NewNotification, NextNotification, NotificationStore};

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

/// Spec: NOTIFY-02, NOTIFY-04
#[test]
fn a_notification_waits_until_it_is_delivered() {
    let repository = open(&Place::new(), LONG);
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
    repository.hasten_notifications("ops").unwrap();
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

/// Spec: NOTIFY-07
#[test]
fn a_deadline_is_due_at_its_time() {
    let repository = open(&Place::new(), LONG);
    let at = |time: i64| NotificationDetail {
        deadline: Some(crate::clock::Timestamp(time)),
        ..NotificationDetail::default()
    };
    let new = [new("ops", 1, &at(i64::MAX / 2)), new("ops", 2, &at(1_000))];
    repository.queue_notifications(&new).unwrap();
    assert_eq!(take(&repository), Some(2));
    assert_eq!(take(&repository), None);
}

/// Spec: NOTIFY-04
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
