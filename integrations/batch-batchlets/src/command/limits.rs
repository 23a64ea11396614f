//! The limits of a command, and how it ends.

use std::process::ExitStatus;
use std::time::Duration;

/// The end of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

/// When a command is killed.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeout: Option<Duration>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "other systems end a program at once"))]
    pub(super) kill_after: Duration,
}
