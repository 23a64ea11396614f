//! How a batchlet ends.

use batch_runtime::prelude::*;

/// The exit status of a batchlet that was stopped before it had finished.
pub(crate) const STOPPED: &str = "STOPPED";

/// The exit status of a batchlet that has done its work.
pub(crate) const COMPLETED: &str = "COMPLETED";

/// Adds what was done to the exit description of the step, and returns its exit status.
pub(crate) fn completed(step: &StepContext, done: impl Into<String>) -> String {
    step.set_exit_description("batchlet", done);
    COMPLETED.to_owned()
}

/// Returns a number of things, such as `1 file` or `3 files`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}
