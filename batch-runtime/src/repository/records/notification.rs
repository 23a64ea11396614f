//! Notifications that wait for their delivery.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::notify::{NotificationDetail, NotificationEvent};
use crate::random::random_id;

/// A notification to be queued for one target.
#[derive(Clone, Debug)]
pub(crate) struct NewNotification {
    pub(crate) id: String,
    pub(crate) target: String,
    pub(crate) event: NotificationEvent,
    pub(crate) job: String,
    pub(crate) instance: JobInstanceId,
    pub(crate) execution: JobExecutionId,
    /// It is due at the deadline in it; without one it is due at once.
    pub(crate) detail: NotificationDetail,
}

impl NewNotification {
    pub(crate) fn now(
        target: &str,
        event: NotificationEvent,
        job: &str,
        instance: JobInstanceId,
        execution: JobExecutionId,
        detail: &NotificationDetail,
    ) -> Self {
        Self {
            id: random_id(),
            target: target.to_owned(),
            event,
            job: job.to_owned(),
            instance,
            execution,
            detail: detail.clone(),
        }
    }
}

/// A notification that waits for its delivery.
#[derive(Clone, Debug)]
pub(crate) struct QueuedNotification {
    pub(crate) id: String,
    pub(crate) target: String,
    pub(crate) event: NotificationEvent,
    pub(crate) job: String,
    pub(crate) instance: JobInstanceId,
    pub(crate) execution: JobExecutionId,
    pub(crate) detail: NotificationDetail,
    pub(crate) created: Timestamp,
    pub(crate) due: Timestamp,
    /// The number of attempts before.
    pub(crate) attempts: u32,
    pub(crate) last_error: Option<String>,
}

/// The next notification of a target.
#[derive(Clone, Debug)]
pub(crate) enum NextNotification {
    /// Taken.
    Due(Box<QueuedNotification>),
    /// Due after this time.
    In(Duration),
    None,
}
