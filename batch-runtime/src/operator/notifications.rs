//! Notifications that wait for their delivery.

use super::{JobOperator, JobOperatorError, Result};
use crate::notify::{NotificationTarget, PendingNotification};

impl JobOperator {
    /// Returns the names of this runtime's notification targets, in the order they were added.
    pub fn notification_targets(&self) -> Vec<&str> {
        let targets = self.shared.notifications.deliveries();
        targets.map(|delivery| delivery.target()).collect()
    }

    /// Returns the notifications that are not delivered yet, for the targets of all processes, in the order they are due. The notification
    /// of a deadline is due at the deadline.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: NOTIFY-08
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
    // Spec: NOTIFY-08
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
    // Spec: NOTIFY-08
    pub fn test_notification(&self, target: &str) -> Result<()> {
        let mut deliveries = self.shared.notifications.deliveries();
        let delivery = deliveries.find(|delivery| delivery.target() == target);
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
        if !(1..=MAX).contains(&name.chars().count())
            || name.trim() != name
            || name.contains(char::is_control)
        {
            return Err(format!(
                "invalid name `{shown}` of a notification target: expected 1 to {MAX} characters without control characters and outer spaces"
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

#[cfg(test)]
mod tests {
    use super::*;
    // Spec: NOTIFY-06
    #[test]
    fn names_of_targets_are_checked() {
        let check = |names: &[&str]| {
            let targets = names.iter().map(|name| NotificationTarget::queued(*name));
            check_targets(&targets.collect::<Vec<_>>())
        };
        assert_eq!(check(&["ops", "on call", "öps"]), Ok(()));
        for name in ["", " ops", "ops ", "o\0ps", "o\nps", &"o".repeat(101)] {
            let error = check(&["ops", name]).unwrap_err();
            assert!(error.starts_with("invalid name `"), "{error}");
        }
        let twice = check(&["ops", "ops"]).unwrap_err();
        assert!(
            twice.starts_with("there are two notification targets with the name `ops`"),
            "{twice}"
        );
    }
}
