//! The stored states of parallel elements, shared by the threads of an execution.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::threads::lock;
use crate::repository::{ElementState, RepositoryError};

/// The states by the paths of the elements.
#[derive(Default)]
pub(crate) struct States(Mutex<BTreeMap<String, Arc<ElementState>>>);

impl States {
    pub(crate) fn new(kept: BTreeMap<String, ElementState>) -> Self {
        let shared = kept.into_iter().map(|(key, state)| (key, Arc::new(state)));
        Self(Mutex::new(shared.collect()))
    }

    /// Returns the state of an element. A plan may be large, so it is not copied.
    pub(super) fn get(&self, key: &str) -> Arc<ElementState> {
        lock(&self.0).get(key).cloned().unwrap_or_default()
    }

    /// Changes the state of one element and records it, one thread at a time.
    pub(super) fn keep(
        &self,
        key: &str,
        change: impl FnOnce(&mut ElementState),
        record: impl FnOnce(&ElementState) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let mut states = lock(&self.0);
        let state = Arc::make_mut(states.entry(key.to_owned()).or_default());
        change(state);
        record(state)
    }
}
