//! The files that the running steps read or write: an output must neither replace nor delete one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batch_runtime::JobExecutionId;

use crate::dataset::{DatasetName, Datasets};

/// A step: the URL of its repository, its job execution and its id, which its partitions share.
type Step = (String, JobExecutionId, String);

/// Files of a step, by the artifact that uses them.
type Used = (Step, Arc<[DatasetName]>);

/// The files of the steps that run in this process.
static USED: Mutex<Vec<Used>> = Mutex::new(Vec::new());

fn used() -> MutexGuard<'static, Vec<Used>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The registered files of a reader or writer; dropping it removes them.
#[derive(Default)]
pub(crate) struct UsedFiles(Option<Arc<[DatasetName]>>);

impl UsedFiles {
    pub(crate) fn of(datasets: &Datasets, files: impl Iterator<Item = DatasetName>) -> Self {
        let files = datasets.place().map(|step| {
            let files: Arc<[DatasetName]> = files.collect();
            used().push((step, Arc::clone(&files)));
            files
        });
        Self(files)
    }

    fn is(&self, files: &Arc<[DatasetName]>) -> bool {
        self.0.as_ref().is_some_and(|own| Arc::ptr_eq(own, files))
    }
}

impl Drop for UsedFiles {
    fn drop(&mut self) {
        if self.0.is_some() {
            used().retain(|(_, files)| !self.is(files));
        }
    }
}

/// Returns whether another artifact of the step uses the file that `output` will replace or delete, even by another name. `own` are the files
/// of the writer itself.
pub(super) fn is_used(datasets: &Datasets, output: &DatasetName, own: &[UsedFiles]) -> bool {
    let Some(step) = datasets.place() else {
        return false;
    };
    let used = used();
    let others = used
        .iter()
        .filter(|(other, files)| *other == step && !own.iter().any(|own| own.is(files)));
    let mut files = others.flat_map(|(_, files)| files.iter());
    let target = existing(output);
    files.any(|file| file == output || target.is_some() && existing(file) == target)
}

/// Returns the canonical path of a local file that exists.
fn existing((namespace, name): &DatasetName) -> Option<PathBuf> {
    (namespace == "file")
        .then(|| fs::canonicalize(Path::new(name)).ok())
        .flatten()
}
