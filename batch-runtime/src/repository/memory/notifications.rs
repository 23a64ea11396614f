//! Notifications that wait for their delivery.
// Spec: NOTIFY-02

use std::convert::Infallible;
use std::time::Duration;

use super::MemoryRepository;
use super::tables::Tables;
use crate::clock::Timestamp;
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::notify::NotificationEvent;
use crate::repository::{
    ClaimRequest, NewNotification, NextNotification, NotificationStore, QueuedNotification, Result, rules,
};
use crate::status::BatchStatus;

impl NotificationStore for MemoryRepository {
    fn queue_notifications(&self, new: &[NewNotification]) -> Result<()> {
        self.insert(&mut self.alone(), new);
        Ok(())
    }

    fn take_notification(&self, target: &str, attempt: Duration) -> Result<NextNotification> {
        let mut tables = self.alone();
        let now = self.now();
        let of_target = tables.notifications.iter_mut().filter(|one| one.target == target);
        let Some(next) = of_target.min_by_key(|one| one.due) else {
            return Ok(NextNotification::None);
        };
        let wait = next.due.millis_since(now);
        if wait > 0 {
            return Ok(NextNotification::In(Duration::from_millis(wait)));
        }
        let taken = Box::new(next.clone());
        next.attempts += 1;
        next.due = later(now, attempt);
        Ok(NextNotification::Due(taken))
    }

    fn forget_notification(&self, id: &str) -> Result<()> {
        self.alone().notifications.retain(|one| one.id != id);
        Ok(())
    }

    fn postpone_notification(&self, id: &str, pause: Duration, error: &str) -> Result<()> {
        let due = later(self.now(), pause);
        let mut tables = self.alone();
        if let Some(failed) = tables.notifications.iter_mut().find(|one| one.id == id) {
            failed.due = due;
            failed.last_error = Some(error.to_owned());
        }
        Ok(())
    }

    fn retry_notifications(&self, target: &str) -> Result<()> {
        let now = self.now();
        let mut tables = self.alone();
        let of_target = tables.notifications.iter_mut().filter(|one| one.target == target);
        for failed in of_target.filter(|one| one.attempts > 0) {
            failed.due = failed.due.min(now);
        }
        Ok(())
    }

    fn notifications(&self) -> Result<Vec<QueuedNotification>> {
        let mut all = self.shared().notifications.clone();
        all.sort_by_key(|one| one.due);
        Ok(all)
    }
}

impl MemoryRepository {
    /// Queues the notifications of the end of an execution. An instance that is complete before its deadline is not overdue.
    pub(super) fn notify_of_end(&self, tables: &mut Tables, execution: &JobExecution, status: BatchStatus) {
        if self.notifications.are_none() {
            return;
        }
        if status == BatchStatus::Completed {
            // One that is due stays, because the instance is complete too late. If that is wrong by a moment, its sender notices.
            let now = self.now();
            let is_early = |one: &QueuedNotification| one.attempts == 0 && one.due > now;
            let waits =
                |one: &QueuedNotification| is_deadline_of(one, execution.instance_id) && is_early(one);
            tables.notifications.retain(|one| !waits(one));
        }
        let new = rules::notifications_of_end(&self.notifications, execution, status);
        self.insert(tables, &new);
    }

    /// Queues the notifications of executions that were closed because nothing runs them, and that nothing continues yet.
    pub(super) fn notify_of_closed(&self, tables: &mut Tables, closed: &[JobExecutionId]) {
        let rows = closed.iter().filter_map(|id| tables.executions.get(id));
        let rows: Vec<JobExecution> = rows.map(|found| found.row.clone()).collect();
        for row in &rows {
            self.notify_of_end(tables, row, row.status);
        }
    }

    /// Queues the notifications of a new execution: of what it takes over, and of its deadline.
    pub(super) fn notify_of_claim(
        &self,
        tables: &mut Tables,
        request: &ClaimRequest<'_>,
        execution: &JobExecution,
        taken_over: &[JobExecutionId],
    ) {
        let first = || {
            let mut all = tables.executions_of(execution.instance_id);
            Ok::<_, Infallible>(all.next().map(|first| first.row.created))
        };
        let Ok(new) =
            rules::notifications_of_claim(&self.notifications, request, execution, taken_over, first);
        // The deadline of an earlier execution.
        tables
            .notifications
            .retain(|one| !is_deadline_of(one, execution.instance_id));
        self.insert(tables, &new);
    }

    fn insert(&self, tables: &mut Tables, new: &[NewNotification]) {
        let now = self.now();
        let queued = new.iter().cloned().map(|new| QueuedNotification {
            id: new.id,
            target: new.target,
            event: new.event,
            job: new.job,
            instance: new.instance,
            execution: new.execution,
            created: now,
            due: new.detail.deadline.unwrap_or(now),
            detail: new.detail,
            attempts: 0,
            last_error: None,
        });
        tables.notifications.extend(queued);
    }
}

fn is_deadline_of(one: &QueuedNotification, instance: JobInstanceId) -> bool {
    one.event == NotificationEvent::Overdue && one.instance == instance
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp(now.0.saturating_add(wait))
}
