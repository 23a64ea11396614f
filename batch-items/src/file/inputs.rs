//! The files that the running steps read: an output must not replace one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use batch_runtime::JobExecutionId;

use crate::dataset::{DatasetName, Datasets};

/// A step: the URL of its repository, its job execution and its id, which its partitions share.
type Step = (String, JobExecutionId, String);

/// The inputs of the steps that run in this process.
static INPUTS: Mutex<Vec<(Step, Arc<[DatasetName]>)>> = Mutex::new(Vec::new());

/// The registered files of a reader; dropping it removes them.
#[derive(Default)]
pub(super) struct Inputs(Option<Arc<[DatasetName]>>);

impl Inputs {
    pub(super) fn of(datasets: &Datasets, files: impl Iterator<Item = DatasetName>) -> Self {
        let files = datasets.place().map(|step| {
            let files: Arc<[DatasetName]> = files.collect();
            let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
            inputs.push((step, Arc::clone(&files)));
            files
        });
        Self(files)
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        if let Some(files) = &self.0 {
            let mut inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
            inputs.retain(|(_, other)| !Arc::ptr_eq(files, other));
        }
    }
}

/// Returns whether the step reads the file that `output` will replace, even by another name.
pub(super) fn reads(datasets: &Datasets, output: &DatasetName) -> bool {
    let Some(step) = datasets.place() else {
        return false;
    };
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut files = inputs
        .iter()
        .filter(|(other, _)| *other == step)
        .flat_map(|(_, files)| files.iter());
    let target = existing(output);
    files.any(|file| file == output || target.is_some() && existing(file) == target)
}

/// Returns the canonical path of a local file that exists.
fn existing((namespace, name): &DatasetName) -> Option<PathBuf> {
    (namespace == "file")
        .then(|| fs::canonicalize(Path::new(name)).ok())
        .flatten()
}
