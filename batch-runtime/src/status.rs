//! Batch statuses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The batch status of a job or step execution.
// Spec: STATUS-06
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum BatchStatus {
    /// Accepted, but not started.
    Starting,
    /// Running.
    Started,
    /// A stop was requested.
    Stopping,
    /// Stopped.
    Stopped,
    /// Ended by an unhandled exception, or by a `fail` element.
    Failed,
    /// Ended normally.
    Completed,
    /// Abandoned by an operator: the instance cannot be restarted.
    Abandoned,
    /// Written by Spring Batch if it could not save its state. This runtime reads it, but never writes it.
    Unknown,
}

impl BatchStatus {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Starting,
        Self::Started,
        Self::Stopping,
        Self::Stopped,
        Self::Failed,
        Self::Completed,
        Self::Abandoned,
        Self::Unknown,
    ];

    /// Returns the status after a stop request; `None` if the execution has ended.
    // Spec: STATUS-23
    pub(crate) fn after_stop_request(self) -> Option<Self> {
        (!self.is_final()).then_some(Self::Stopping)
    }

    /// Returns the status of an execution whose process is dead; `None` if it had ended before.
    // Spec: STATUS-23
    pub(crate) fn after_crash(self) -> Option<Self> {
        match self {
            Self::Starting | Self::Started => Some(Self::Failed),
            // It is stopped, as the operator intended.
            Self::Stopping => Some(Self::Stopped),
            _ => None,
        }
    }

    /// Returns whether an execution in this status has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Starting | Self::Started | Self::Stopping)
    }

    /// Returns the exit code of a process whose job ends in this status, unless the job maps its exit statuses to
    /// other codes: 0 for COMPLETED, 3 for STOPPED, 1 for any other. See
    /// [`JobOperator::exit_code`](crate::JobOperator::exit_code).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Stopped => 3,
            _ => 1,
        }
    }

    /// Returns the status as stored in the repository.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "STARTING",
            Self::Started => "STARTED",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Failed => "FAILED",
            Self::Completed => "COMPLETED",
            Self::Abandoned => "ABANDONED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Parses a status of the repository.
    pub fn from_repository(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for BatchStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BatchStatus::*;

    // Spec: STATUS-23
    #[test]
    fn a_final_status_never_changes() {
        let expected = |status| match status {
            Starting | Started => (Some(Stopping), Some(Failed)),
            Stopping => (Some(Stopping), Some(Stopped)),
            Stopped | Failed | Completed | Abandoned | Unknown => (None, None),
        };
        for status in BatchStatus::ALL {
            let after = (status.after_stop_request(), status.after_crash());
            assert_eq!(after, expected(status), "{status}");
        }
    }

    // Spec: STATUS-04, STATUS-06
    #[test]
    fn spelled_as_in_the_repository() {
        for status in BatchStatus::ALL {
            assert_eq!(BatchStatus::from_repository(status.as_str()), Some(status));
        }
        assert_eq!(BatchStatus::from_repository("WEIRD"), None);
    }
}
