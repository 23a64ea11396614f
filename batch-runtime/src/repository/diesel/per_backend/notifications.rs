//! Notifications that wait for their delivery. The notification of an end is inserted by the transaction that records the end.
// Spec: NOTIFY-02

use std::time::Duration;

use diesel::prelude::*;

use super::executions::execution_in;
use super::schema::{job_execution, notification};
use super::{Connection, Db, Repository, Work, corrupt};
use crate::clock::Timestamp;
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::notify::{NotificationDetail, NotificationEvent, UnknownEvent};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::db_timestamp::DbTimestamp;
use crate::repository::diesel::one_of::one_of;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::diesel::update::update;
use crate::repository::{
    ClaimRequest, NewNotification, NextNotification, NotificationStore, QueuedNotification, RepositoryError,
    Result, rules,
};
use crate::status::BatchStatus;

type Row = (
    (String, String, String, String, i64, i64),
    (String, i64, i64, i64, Option<String>),
);

/// Selects notifications as `Row`s.
macro_rules! notifications {
    () => {
        notification::table.select((
            (
                notification::notification_id,
                notification::target,
                notification::event,
                notification::job_name,
                notification::job_instance_id,
                notification::job_execution_id,
            ),
            (
                notification::detail,
                notification::created_at,
                notification::due_at,
                notification::attempts,
                notification::last_error,
            ),
        ))
    };
}

impl NotificationStore for Repository {
    fn queue_notifications(&self, new: &[NewNotification]) -> Result<()> {
        self.run(Tx::write("store notifications"), |connection, in_doubt| {
            let first = new.first().map_or("", |first| &first.id);
            let find = notification::table.find(first);
            // All are inserted by one commit, so the first shows whether the earlier attempt has stored them.
            if in_doubt && find.count().get_result::<i64>(connection)? == 1 {
                return Ok(());
            }
            insert(connection, new)
        })
    }

    fn take_notification(&self, target: &str, attempt: Duration) -> Result<NextNotification> {
        const ACTION: &str = "take a notification";
        let next = |connection: &mut Connection, _| -> Work<NextNotification> {
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let query = notifications!()
                .filter(notification::target.eq(target))
                // Other events are of a newer version, which sends them.
                .filter(one_of(notification::event, known_events()))
                .order((notification::due_at.asc(), notification::notification_id.asc()));
            let row: Option<Row> = query.first(connection).optional()?;
            let Some(row) = row else {
                return Ok(NextNotification::None);
            };
            let found = queued(row)?;
            let wait = found.due.millis_since(Timestamp(now));
            Ok(match wait {
                0 => NextNotification::Due(Box::new(found)),
                wait => NextNotification::In(Duration::from_millis(wait)),
            })
        };
        // Most calls find nothing, and write nothing.
        let found = self.run(Tx::read(ACTION), &next)?;
        if !matches!(found, NextNotification::Due(_)) {
            return Ok(found);
        }
        self.run(Tx::write(ACTION), |connection, _| {
            let NextNotification::Due(found) = next(connection, false)? else {
                return Ok(NextNotification::In(Duration::ZERO));
            };
            let row = notification::table
                .find(&found.id)
                // A process that takes it first changes this time.
                .filter(notification::due_at.eq(found.due.0));
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let taken = update(row)
                .set((
                    // It stays in the table: if this process dies while it sends, another one sends it after this
                    // time.
                    notification::due_at.eq(later(now, attempt)),
                    notification::attempts.eq(i64::from(found.attempts) + 1),
                ))
                .execute(connection)?;
            Ok(match taken {
                1 => NextNotification::Due(found),
                // Another process was faster.
                _ => NextNotification::In(Duration::ZERO),
            })
        })
    }

    fn forget_notification(&self, id: &str) -> Result<()> {
        self.run(Tx::write("remove a notification"), |connection, _| {
            diesel::delete(notification::table.find(id)).execute(connection)?;
            Ok(())
        })
    }

    fn postpone_notification(&self, id: &str, pause: Duration, error: &str) -> Result<()> {
        self.run(Tx::write("postpone a notification"), |connection, _| {
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            update(notification::table.find(id))
                .set((
                    notification::due_at.eq(later(now, pause)),
                    notification::last_error.eq(error),
                ))
                .execute(connection)?;
            Ok(())
        })
    }

    fn retry_notifications(&self, target: &str) -> Result<()> {
        self.run(Tx::write("retry notifications"), |connection, _| {
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let failed = notification::table
                .filter(notification::target.eq(target))
                .filter(notification::attempts.gt(0))
                .filter(notification::due_at.gt(now));
            diesel::update(failed)
                .set(notification::due_at.eq(now))
                .execute(connection)?;
            Ok(())
        })
    }

    fn notifications(&self) -> Result<Vec<QueuedNotification>> {
        self.run(Tx::read("list notifications"), |connection, _| {
            let query = notifications!()
                .filter(one_of(notification::event, known_events()))
                .order((notification::due_at.asc(), notification::notification_id.asc()));
            let rows: Vec<Row> = query.load(connection)?;
            rows.into_iter().map(queued).collect()
        })
    }
}

impl Repository {
    /// Queues the notifications of the end of an execution. An instance that is complete before its deadline is not overdue.
    pub(super) fn notify_of_end(
        &self,
        connection: &mut Connection,
        execution: &JobExecution,
        status: BatchStatus,
    ) -> Work<()> {
        if self.notifications.are_none() {
            return Ok(());
        }
        if status == BatchStatus::Completed {
            // One that is due stays, because the instance is complete too late. If that is wrong by a moment, its sender notices.
            let now: i64 = diesel::select(Db::now()).get_result(connection)?;
            let early = deadlines_of(execution.instance_id)
                .filter(notification::attempts.eq(0))
                .filter(notification::due_at.gt(now));
            diesel::delete(early).execute(connection)?;
        }
        insert(
            connection,
            &rules::notifications_of_end(&self.notifications, execution, status),
        )
    }

    /// Queues the notifications of executions that were closed because their owner is dead, and that nothing continues yet.
    pub(super) fn notify_of_closed<E: From<RepositoryError>>(
        &self,
        connection: &mut Connection,
        closed: &[JobExecutionId],
    ) -> Result<(), TransactionError<E>> {
        if self.notifications.are_none() {
            return Ok(());
        }
        for id in closed {
            let execution = execution_in(connection, id.0).map_err(TransactionError::into_other)?;
            if let Some(execution) = execution {
                self.notify_of_end(connection, &execution, execution.status)
                    .map_err(TransactionError::into_other)?;
            }
        }
        Ok(())
    }

    /// Queues the notifications of a new execution: of what it takes over, and of its deadline.
    pub(super) fn notify_of_claim(
        &self,
        connection: &mut Connection,
        request: &ClaimRequest<'_>,
        execution: &JobExecution,
        taken_over: &[JobExecutionId],
    ) -> Work<()> {
        if self.notifications.are_none() {
            return Ok(());
        }
        let first = || -> Work<Option<Timestamp>> {
            let first: Option<DbTimestamp> = job_execution::table
                .filter(job_execution::job_instance_id.eq(execution.instance_id.0))
                .order(job_execution::job_execution_id.asc())
                .select(job_execution::create_time)
                .first(connection)
                .optional()?;
            Ok(first.map(|first| self.time(first)))
        };
        let new = rules::notifications_of_claim(&self.notifications, request, execution, taken_over, first)?;
        let overdue = NotificationEvent::Overdue;
        let targets: Vec<&str> = self.notifications.targets(overdue, &execution.job_name).collect();
        if !targets.is_empty() {
            // The deadline of an earlier execution. Other targets belong to other processes.
            let earlier = deadlines_of(execution.instance_id).filter(one_of(notification::target, targets));
            diesel::delete(earlier).execute(connection)?;
        }
        insert(connection, &new)
    }
}

/// Selects the notifications of the deadline of an instance.
#[diesel::dsl::auto_type(no_type_alias)]
fn deadlines_of(instance: JobInstanceId) -> _ {
    let instance: i64 = instance.0;
    let event: &'static str = NotificationEvent::Overdue.as_str();
    notification::table
        .filter(notification::job_instance_id.eq(instance))
        .filter(notification::event.eq(event))
}

fn insert(connection: &mut Connection, new: &[NewNotification]) -> Work<()> {
    if new.is_empty() {
        return Ok(());
    }
    let now: i64 = diesel::select(Db::now()).get_result(connection)?;
    for new in new {
        let detail = serde_json::to_string(&new.detail);
        let detail = detail.map_err(|_| TransactionError::Rejected(RepositoryError::Fault))?;
        diesel::insert_into(notification::table)
            .values((
                notification::notification_id.eq(&new.id),
                notification::target.eq(&new.target),
                notification::event.eq(new.event.as_str()),
                notification::job_name.eq(&new.job),
                notification::job_instance_id.eq(new.instance.0),
                notification::job_execution_id.eq(new.execution.0),
                notification::detail.eq(detail),
                notification::created_at.eq(now),
                notification::due_at.eq(new.detail.deadline.map_or(now, |deadline| deadline.0)),
                notification::attempts.eq(0),
            ))
            .execute(connection)?;
    }
    Ok(())
}

fn known_events() -> impl Iterator<Item = &'static str> {
    NotificationEvent::ALL.into_iter().map(NotificationEvent::as_str)
}

fn later(now: i64, wait: Duration) -> i64 {
    now.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

fn queued(row: Row) -> Work<QueuedNotification> {
    let ((id, target, event, job, instance, execution), (detail, created, due, attempts, last_error)) = row;
    let unknown = |error: UnknownEvent| corrupt(format!("notification {id}"), error);
    Ok(QueuedNotification {
        event: event.parse().map_err(unknown)?,
        // It is sent all the same: an error would keep the target from all others.
        detail: serde_json::from_str(&detail).unwrap_or_else(|error| NotificationDetail {
            message: Some(format!("the detail of the notification cannot be read: {error}")),
            ..NotificationDetail::default()
        }),
        target,
        job,
        instance: JobInstanceId(instance),
        execution: JobExecutionId(execution),
        created: Timestamp(created),
        due: Timestamp(due),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        last_error,
        id,
    })
}
