//! What is kept of parallel elements, shared by the threads of an execution and recorded whole.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::worker::lock;
use crate::repository::{ElementState, RepositoryError};

/// By the path of the element.
#[derive(Default)]
pub(crate) struct States(Mutex<BTreeMap<String, ElementState>>);

impl States {
    pub(crate) fn new(kept: BTreeMap<String, ElementState>) -> Self {
        Self(Mutex::new(kept))
    }

    pub(super) fn get(&self, key: &str) -> ElementState {
        lock(&self.0).get(key).cloned().unwrap_or_default()
    }

    /// Changes the state of one element and records all; one thread at a time, so that nothing older is recorded later.
    pub(super) fn keep(
        &self,
        key: &str,
        change: impl FnOnce(&mut ElementState),
        record: impl FnOnce(&BTreeMap<String, ElementState>) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let mut states = lock(&self.0);
        change(states.entry(key.to_owned()).or_default());
        record(&states)
    }
}
