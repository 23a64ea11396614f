//! Batch statuses, and the table of their transitions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The batch status of a job or step execution.
///
/// Spec: STATUS-06
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

/// An event that changes the batch status of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusEvent {
    /// The execution starts.
    Begin,
    /// A stop is requested.
    RequestStop,
    /// The execution ended normally.
    Complete,
    /// An unhandled exception.
    Fail,
    /// All threads of the execution ended after a stop request.
    Stop,
    /// The process that ran the execution is dead.
    Crash,
}

// The name under which the crate root exports it.
pub use self::StatusEvent as Event;

/// An event that is not allowed in a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} is not allowed in batch status {from}")]
pub struct IllegalTransition {
    /// The status.
    pub from: BatchStatus,
    /// The event.
    pub event: StatusEvent,
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

    /// Returns the status after `event`, for running executions and for recovery.
    ///
    /// # Errors
    /// When the event is not allowed in this status.
    ///
    /// Spec: STATUS-23
    pub fn after(self, event: StatusEvent) -> Result<Self, IllegalTransition> {
        match (self, event) {
            (Self::Starting, StatusEvent::Begin) => Ok(Self::Started),
            (Self::Starting | Self::Started | Self::Stopping, StatusEvent::RequestStop) => Ok(Self::Stopping),
            (Self::Started, StatusEvent::Complete) => Ok(Self::Completed),
            (Self::Starting | Self::Started | Self::Stopping, StatusEvent::Fail) => Ok(Self::Failed),
            (Self::Stopping, StatusEvent::Stop) => Ok(Self::Stopped),
            (Self::Starting | Self::Started, StatusEvent::Crash) => Ok(Self::Failed),
            // An execution that died after a stop request is stopped, as the operator intended.
            (Self::Stopping, StatusEvent::Crash) => Ok(Self::Stopped),
            (from, event) => Err(IllegalTransition { from, event }),
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
    pub fn as_str(self) -> &'static str {
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

    /// Covers every pair, so that a change of the table changes this test. Spec: STATUS-23
    #[test]
    fn every_status_and_event() {
        let events = [
            StatusEvent::Begin,
            StatusEvent::RequestStop,
            StatusEvent::Complete,
            StatusEvent::Fail,
            StatusEvent::Stop,
            StatusEvent::Crash,
        ];
        let table = [
            (
                Starting,
                [
                    Some(Started),
                    Some(Stopping),
                    None,
                    Some(Failed),
                    None,
                    Some(Failed),
                ],
            ),
            (
                Started,
                [
                    None,
                    Some(Stopping),
                    Some(Completed),
                    Some(Failed),
                    None,
                    Some(Failed),
                ],
            ),
            (
                Stopping,
                [
                    None,
                    Some(Stopping),
                    None,
                    Some(Failed),
                    Some(Stopped),
                    Some(Stopped),
                ],
            ),
            (Stopped, [None; 6]),
            (Failed, [None; 6]),
            (Completed, [None; 6]),
            (Abandoned, [None; 6]),
            (Unknown, [None; 6]),
        ];
        assert_eq!(table.map(|(status, _)| status), BatchStatus::ALL);
        for (status, expected) in table {
            for (event, expected) in events.into_iter().zip(expected) {
                assert_eq!(status.after(event).ok(), expected, "{status} {event:?}");
                assert!(!status.is_final() || expected.is_none(), "{status} is final");
            }
        }
    }

    /// Spec: STATUS-04, STATUS-06
    #[test]
    fn spelled_as_in_the_repository() {
        for status in BatchStatus::ALL {
            assert_eq!(BatchStatus::from_repository(status.as_str()), Some(status));
        }
        assert_eq!(BatchStatus::from_repository("WEIRD"), None);
    }
}
