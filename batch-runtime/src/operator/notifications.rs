//! Notifications that wait for their delivery.

use super::{JobOperator, JobOperatorError, Result};
use crate::notify::{NotificationTarget, PendingNotification};

impl JobOperator {
    /// Returns the names of the notification targets of this runtime, in the order in which they were added.
    pub fn notification_targets(&self) -> Vec<&str> {
        let targets = self.shared.notifications.deliveries();
        targets.map(|delivery| delivery.target().name()).collect()
    }

    /// Returns the notifications that are not delivered yet, of all targets that processes have had, in the order in which they are due.
    /// That of a deadline waits for it.
    ///
    /// # Errors
    /// When the repository fails.
    ///
    /// Spec: NOTIFY-08
    pub fn pending_notifications(&self) -> Result<Vec<PendingNotification>> {
        let all = self.shared.repository.notifications()?;
        let pending = all.into_iter().map(|queued| PendingNotification {
            id: queued.id,
            target: queued.target,
            event: queued.event,
            job: queued.job,
            execution: queued.execution,
            created: queued.created,
            due: queued.due,
            attempts: queued.attempts,
            last_error: queued.last_error,
        });
        Ok(pending.collect())
    }

    /// Sends each notification once that is due or could not be delivered before, to the targets of this runtime, and returns when that is
    /// done. What fails stays pending.
    ///
    /// # Errors
    /// When the repository fails.
    ///
    /// Spec: NOTIFY-08
    pub fn send_notifications(&self) -> Result<()> {
        for delivery in self.shared.notifications.deliveries() {
            delivery.send_now()?;
        }
        Ok(())
    }

    /// Sends a notification of the event [`Test`](crate::notify::NotificationEvent::Test) to a target of this runtime, once.
    ///
    /// # Errors
    /// `NoSuchNotificationTarget`; `NotificationFailed` with the error of its channel.
    ///
    /// Spec: NOTIFY-08
    pub fn test_notification(&self, target: &str) -> Result<()> {
        let mut deliveries = self.shared.notifications.deliveries();
        let delivery = deliveries.find(|delivery| delivery.target().name() == target);
        let delivery = delivery.ok_or_else(|| JobOperatorError::NoSuchNotificationTarget {
            name: target.to_owned(),
            known: self
                .notification_targets()
                .into_iter()
                .map(str::to_owned)
                .collect(),
        })?;
        delivery
            .send_test()
            .map_err(|problem| JobOperatorError::NotificationFailed {
                target: target.to_owned(),
                problem,
            })
    }
}

/// Checks the names of targets.
pub(crate) fn check_targets(targets: &[NotificationTarget]) -> std::result::Result<(), String> {
    const MAX: usize = 100;
    for (index, target) in targets.iter().enumerate() {
        let name = target.name();
        let shown = name.escape_debug();
        if name.trim().is_empty() || name.chars().count() > MAX {
            return Err(format!(
                "the name `{shown}` of a notification target does not have 1 to {MAX} characters"
            ));
        }
        if targets[..index].iter().any(|other| other.name() == name) {
            return Err(format!(
                "there are two notification targets with the name `{shown}`; give each its own"
            ));
        }
    }
    Ok(())
}
