//! The types of properties and user data, and what several artifacts need.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use batch_runtime::BatchError;
use batch_runtime::context::StepContext;
use serde::{Deserialize, Serialize};

/// The exit status of most batchlets.
pub(crate) const GOOD: &str = "VERY GOOD INVOCATION";

/// The exit status of a batchlet that returns `null` in Java: the batch status.
pub(crate) const COMPLETED: &str = "COMPLETED";

/// A property that an artifact cannot run without.
pub(crate) trait Required<T> {
    /// Returns the value.
    fn required(self) -> Result<T, BatchError>;
}

impl<T> Required<T> for Option<T> {
    fn required(self) -> Result<T, BatchError> {
        self.ok_or_else(|| BatchError::msg("a required property is absent"))
    }
}

/// Returns an exit status, `null` if it is not set.
pub(crate) fn or_null(exit_status: Option<String>) -> String {
    exit_status.unwrap_or_else(|| "null".into())
}

/// The persistent user data of the chunk steps that are restarted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RestartData {
    /// The number of the execution, from 1.
    pub(crate) execution_number: i64,
    /// The boundaries of chunks in the next execution.
    pub(crate) next_write_points: Vec<usize>,
}

impl RestartData {
    /// Returns the data that the writer has set.
    pub(crate) fn of(step: &StepContext) -> Result<Self, BatchError> {
        step.persistent_user_data()?
            .ok_or_else(|| BatchError::msg("the writer has not set the persistent user data"))
    }

    /// Sets the data of the next execution, and returns its number.
    pub(crate) fn advance(step: &StepContext, next_write_points: &[usize]) -> Result<i64, BatchError> {
        let earlier: Option<Self> = step.persistent_user_data()?;
        let execution_number = earlier.map_or(0, |data| data.execution_number) + 1;
        step.set_persistent_user_data(&Self {
            execution_number,
            next_write_points: next_write_points.to_vec(),
        })?;
        Ok(execution_number)
    }
}

/// Notes that the artifacts of a step exchange through its transient user data.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<BTreeMap<String, String>>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a note.
    pub(crate) fn set(&self, name: &str, value: impl ToString) {
        self.lock().insert(name.to_owned(), value.to_string());
    }

    /// Returns whether a note has a value.
    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.lock().get(name).is_some_and(|found| found == value)
    }
}
