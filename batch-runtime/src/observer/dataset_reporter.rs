//! Reports the datasets of a step.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Dataset, JobEventKind, JobObserver, ObservedJob, ObservedStep, Observers};
use crate::secret::Secrets;

/// The maximum number of datasets of a step execution that are reported. Each is an event in the bounded queues of the observers.
const MOST: usize = 256;

/// Reports the datasets of a step or partition to the observers of the program.
pub(crate) struct DatasetReporter {
    pub(super) observers: Arc<Observers>,
    pub(super) job: Arc<ObservedJob>,
    pub(super) step: Arc<ObservedStep>,
    pub(super) secrets: Secrets,
    pub(super) reported: Mutex<Vec<Dataset>>,
}

/// Progress does not include datasets, nor executions of dead processes.
pub(super) struct NoProgress;

impl JobObserver for NoProgress {
    fn on_event(&self, _: &super::JobEvent) {}
}

impl DatasetReporter {
    /// Emits a dataset, unless it was reported before: an artifact is opened again after a rollback.
    pub(crate) fn report(&self, mut dataset: Dataset) {
        dataset.hide(&self.secrets);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= MOST || reported.contains(&dataset) {
            return;
        }
        reported.push(dataset.clone());
        let kind = JobEventKind::DatasetUsed(Box::new(dataset));
        self.observers
            .emit(&self.job, Some(&self.step), kind, &NoProgress);
    }
}
