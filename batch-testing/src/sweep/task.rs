//! The task of a child process.

use std::collections::BTreeMap;

use batch_runtime::parameters::ParameterValue;
use serde::{Deserialize, Serialize};

/// The environment variable with the task, in JSON.
pub(super) const TASK: &str = "BATCH_TESTING_CRASH_SWEEP";

/// The task of a child process, with the values that the test has computed: they may differ in each process, such as the name of
/// a temporary folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChildTask {
    /// The sweep: its place in the source, and its number among the sweeps at that place.
    pub(super) location: String,
    pub(super) ordinal: u32,
    pub(super) repository: String,
    /// The file for the events.
    pub(super) events: String,
    /// The names of the repository's tables.
    pub(super) tables: Vec<String>,
    pub(super) parameters: Vec<(String, ParameterValue, bool)>,
    /// The system properties.
    pub(super) system: BTreeMap<String, String>,
    pub(super) injection: Option<Injection>,
}

/// A fault at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Injection {
    pub(super) fault: Fault,
    /// The number of the event, from 1.
    pub(super) event: usize,
}

/// The kind of a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fault {
    /// The process ends at once.
    Death,
    /// The call of the statement panics, before it is executed or after a commit.
    Panic,
    /// A write of the transaction fails with an error of the database, or all connections to the server are lost.
    Error,
}

impl Fault {
    /// Returns the faults that can happen at an event.
    pub(super) fn at(event: &str, has_server: bool) -> Vec<Self> {
        let mut faults = vec![Self::Death, Self::Panic];
        // A file cannot be lost; a transaction that only reads cannot fail to write.
        let has_error = match has_server {
            true => event.starts_with("before"),
            false => event.starts_with("before BEGIN IMMEDIATE"),
        };
        faults.extend(has_error.then_some(Self::Error));
        faults
    }
}

/// The exit code of a child whose job is COMPLETED.
pub(super) const COMPLETED: i32 = 0;

/// The exit code of a child that panicked, or that was to die.
pub(super) const PANICKED: i32 = 101;

/// The exit code of a child whose job has ended, but is not COMPLETED.
pub(super) const NOT_COMPLETED: i32 = 3;
