//! What a child process of a sweep has to do.

use batch_runtime::parameters::ParameterValue;
use serde::{Deserialize, Serialize};

/// The environment variable with the order, in JSON.
pub(super) const ORDER: &str = "BATCH_TESTING_CRASH_SWEEP";
/// The file in the folder of a run to which the child writes the events.
pub(super) const EVENTS: &str = "events.txt";

/// What a child process has to do. The values that the test has computed come from the parent, because they may differ in each
/// process, such as the name of a temporary folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The place of the sweep in the source: a test may have several.
    pub(super) place: String,
    pub(super) repository: String,
    /// The folder of the run.
    pub(super) folder: String,
    pub(super) parameters: Vec<(String, ParameterValue, bool)>,
    pub(super) crash: Option<Crash>,
}

/// A fault at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Crash {
    pub(super) fault: Fault,
    /// The number of the event, from 1.
    pub(super) event: usize,
}

/// How a crash takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fault {
    /// The process ends at once.
    Death,
    /// The statement panics before it is executed, or after a commit.
    Error,
}

impl Fault {
    pub(super) const ALL: [Self; 2] = [Self::Death, Self::Error];
}

/// The exit code of a child whose job has ended, but is not COMPLETED.
pub(super) const NOT_COMPLETED: i32 = 3;
