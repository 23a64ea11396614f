//! The stored states of parallel elements, shared by the threads of an execution.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::threads::lock;
use crate::job_data::CommittedData;
use crate::repository::{ElementState, KeptState, RepositoryError, RepositoryLayout, RestartPosition};

/// The states by the paths of the elements, and the data of the job.
#[derive(Default)]
pub(crate) struct States {
    elements: Mutex<BTreeMap<String, Arc<ElementState>>>,
    pub(crate) data: CommittedData,
    /// Where the execution resumes, if a `stop` element ended the previous one.
    pub(super) restart: Option<RestartPosition>,
}

impl States {
    pub(crate) fn new(kept: KeptState, layout: RepositoryLayout) -> Self {
        let elements = kept.elements.into_iter();
        let elements = elements.map(|(key, state)| (key, Arc::new(state))).collect();
        Self {
            elements: Mutex::new(elements),
            data: CommittedData::new(kept.data, layout),
            restart: kept.restart,
        }
    }

    /// Returns the state of an element. A plan may be large, so it is not copied.
    pub(super) fn get(&self, key: &str) -> Arc<ElementState> {
        lock(&self.elements).get(key).cloned().unwrap_or_default()
    }

    /// Changes the state of one element and records it, one thread at a time.
    pub(super) fn keep(
        &self,
        key: &str,
        change: impl FnOnce(&mut ElementState),
        record: impl FnOnce(&ElementState) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let mut states = lock(&self.elements);
        let state = Arc::make_mut(states.entry(key.to_owned()).or_default());
        change(state);
        record(state)
    }
}
