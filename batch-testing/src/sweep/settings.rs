//! What a test sets of its crash sweep.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::JobTest;
use crate::database::{Prepare, TestDatabase};

/// The settings of a crash sweep.
pub(super) struct SweepSettings {
    pub(super) test: JobTest,
    /// Returns the URL of a server's database.
    pub(super) repository: Option<Box<dyn FnOnce() -> String + Send + Sync>>,
    /// Parameters whose values are files in the folder of the run.
    pub(super) outputs: Vec<(String, String)>,
    pub(super) prepare: Option<Box<Prepare>>,
    pub(super) ignored: Vec<String>,
    pub(super) normalize: Option<Box<Normalize>>,
    pub(super) test_name: Option<String>,
    /// The number of faults, if not all are injected.
    pub(super) sample: Option<usize>,
}

/// Changes the text of a file with this name before it is compared.
pub(super) type Normalize = dyn Fn(&str, String) -> String + Send + Sync;

pub(super) type Check<'c> = dyn Fn(&mut TestDatabase) -> String + Sync + 'c;

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
