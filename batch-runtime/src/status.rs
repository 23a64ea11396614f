//! Batch status, and the one table of its legal transitions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The status that the runtime gives a job or step execution.
///
/// Spec: STATUS-06
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum BatchStatus {
    /// Handed to the runtime, not begun.
    Starting,
    /// Begun.
    Started,
    /// A stop was requested.
    Stopping,
    /// Ended by a stop.
    Stopped,
    /// Ended by an unresolved exception, or by a `fail` element.
    Failed,
    /// Ended normally.
    Completed,
    /// Given up by an operator: nothing continues the instance.
    Abandoned,
    /// Written by Spring Batch when it could not save its state; this runtime reads it and never writes it.
    Unknown,
}

/// What happens to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Execution begins.
    Begin,
    /// A stop is requested.
    RequestStop,
    /// The work ended normally.
    Complete,
    /// An exception that nothing resolved.
    Fail,
    /// Every thread of the execution has ended after a stop request.
    Stop,
    /// The process that ran the execution is dead.
    Crash,
}

/// An event that is not possible in a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} is not possible in batch status {from}")]
pub struct IllegalTransition {
    /// The status.
    pub from: BatchStatus,
    /// The event.
    pub event: Event,
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

    /// The status after `event`. Used by the live path and by recovery alike.
    ///
    /// # Errors
    /// When the event is not possible in this status.
    ///
    /// Spec: STATUS-23
    pub fn after(self, event: Event) -> Result<Self, IllegalTransition> {
        match (self, event) {
            (Self::Starting, Event::Begin) => Ok(Self::Started),
            (Self::Starting | Self::Started | Self::Stopping, Event::RequestStop) => Ok(Self::Stopping),
            (Self::Started, Event::Complete) => Ok(Self::Completed),
            (Self::Starting | Self::Started | Self::Stopping, Event::Fail) => Ok(Self::Failed),
            (Self::Stopping, Event::Stop) => Ok(Self::Stopped),
            (Self::Starting | Self::Started, Event::Crash) => Ok(Self::Failed),
            // The stop was asked for, and nothing runs any more: that is what the operator wanted.
            (Self::Stopping, Event::Crash) => Ok(Self::Stopped),
            (from, event) => Err(IllegalTransition { from, event }),
        }
    }

    /// Whether an execution in this status has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Starting | Self::Started | Self::Stopping)
    }

    /// Returns the code that a process exits with when its job ends in this status, unless the job maps its exit statuses
    /// to other codes: 0 for COMPLETED, 3 for STOPPED, 1 for any other. See
    /// [`JobOperator::exit_code`](crate::JobOperator::exit_code).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Stopped => 3,
            _ => 1,
        }
    }

    /// The status as the repository spells it.
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

    /// The status that the repository spells so.
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

    /// Every pair, so that a change of the table is a change of this test. Spec: STATUS-23
    #[test]
    fn every_status_and_event() {
        let events = [
            Event::Begin,
            Event::RequestStop,
            Event::Complete,
            Event::Fail,
            Event::Stop,
            Event::Crash,
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
