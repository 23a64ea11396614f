//! The operations on notifications that wait for their delivery. The operation that records an end queues its notification.

use std::time::Duration;

use crate::repository::{NewNotification, NextNotification, QueuedNotification, Result};

/// The operations on notifications.
// Spec: NOTIFY-02
pub(crate) trait NotificationStore: Send + Sync {
    /// Queues notifications. A crash before it loses them.
    fn queue_notifications(&self, new: &[NewNotification]) -> Result<()>;

    /// Takes the notification of a target that has been due longest, and makes it due again after `attempt`. A crash afterwards leaves it
    /// due after that time. Events that only a newer version knows are left to it.
    fn take_notification(&self, target: &str, attempt: Duration) -> Result<NextNotification>;

    /// Deletes a notification that is delivered.
    fn forget_notification(&self, id: &str) -> Result<()>;

    /// Makes a notification due after `pause`, because it could not be delivered.
    fn postpone_notification(&self, id: &str, pause: Duration, error: &str) -> Result<()>;

    /// Makes the notifications of a target due that could not be delivered.
    fn retry_notifications(&self, target: &str) -> Result<()>;

    /// Returns all notifications of known events, in the order they are due.
    fn notifications(&self) -> Result<Vec<QueuedNotification>>;
}
