//! The notifications that an execution queues.
// Spec: NOTIFY-02

use crate::clock::Timestamp;
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::notify::{NotificationDetail, NotificationEvent, NotificationRules, event_of_end};
use crate::repository::{ClaimRequest, NewNotification};
use crate::status::BatchStatus;

/// Returns the notifications of the end of an execution.
pub(crate) fn notifications_of_end(
    rules: &NotificationRules,
    execution: &JobExecution,
    status: BatchStatus,
) -> Vec<NewNotification> {
    let event = event_of_end(status);
    event.map_or_else(Vec::new, |event| {
        of_event(rules, event, execution, &NotificationDetail::default())
    })
}

/// Returns the notifications of a new execution: of what it takes over, and of its deadline. `first` returns the time of the instance's
/// first execution.
pub(crate) fn notifications_of_claim<E>(
    rules: &NotificationRules,
    request: &ClaimRequest<'_>,
    execution: &JobExecution,
    taken_over: &[JobExecutionId],
    first: impl FnOnce() -> Result<Option<Timestamp>, E>,
) -> Result<Vec<NewNotification>, E> {
    let of_dead = |dead: &JobExecutionId| {
        let detail = NotificationDetail {
            dead_execution: Some(dead.0),
            ..NotificationDetail::default()
        };
        of_event(rules, NotificationEvent::TakenOver, execution, &detail)
    };
    let mut new: Vec<_> = taken_over.iter().flat_map(of_dead).collect();
    let is_wanted = rules
        .targets(NotificationEvent::Overdue, &execution.job_name)
        .next()
        .is_some();
    if let Some(deadline) = request.deadline.as_ref().filter(|_| is_wanted) {
        let detail = NotificationDetail {
            deadline: Some(deadline.of(first()?.unwrap_or(execution.created))),
            ..NotificationDetail::default()
        };
        new.extend(of_event(rules, NotificationEvent::Overdue, execution, &detail));
    }
    Ok(new)
}

fn of_event(
    rules: &NotificationRules,
    event: NotificationEvent,
    execution: &JobExecution,
    detail: &NotificationDetail,
) -> Vec<NewNotification> {
    let (instance, job) = (execution.instance_id, &execution.job_name);
    let new = |target: &str| NewNotification::now(target, event, job, instance, execution.id, detail);
    rules.targets(event, job).map(new).collect()
}
