//! The configuration of a repository.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::notify::NotificationRules;
use crate::time_zone::TimeZone;

/// The configuration of a repository that a runtime opens.
pub(crate) struct RepositoryConfig {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) lease_time: Duration,
    /// The zone of the wall-clock times in its TIMESTAMP columns.
    pub(crate) zone: TimeZone,
    pub(crate) notifications: NotificationRules,
}

#[cfg(test)]
impl RepositoryConfig {
    pub(crate) fn with_lease(lease_time: Duration) -> Self {
        Self {
            clock: Arc::new(crate::clock::SystemClock),
            lease_time,
            zone: TimeZone::UTC,
            notifications: NotificationRules::default(),
        }
    }
}
