//! The files that an output must neither replace nor delete: those that the running steps read or write, databases, and jobs.

use std::fs;
use std::io::Read;
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

/// Returns what an existing file is if no output can be meant to replace it: the repository may be in it, or the job itself.
pub(super) fn kind_to_keep(output: &DatasetName) -> Option<&'static str> {
    /// What a job has at its beginning: its namespace, or an element of a draft that needs none.
    const OF_JOBS: [&str; 4] = ["/xml/ns/ja", "<step ", "<flow ", "<split "];
    let mut beginning = Vec::new();
    let file = fs::File::open(existing(output)?).ok()?;
    file.take(4096).read_to_end(&mut beginning).ok()?;
    if beginning.starts_with(b"SQLite format 3\0") {
        return Some("a SQLite database");
    }
    let text = String::from_utf8_lossy(&beginning);
    let is_job = text.trim_start().starts_with('<') && text.contains("<job ");
    (is_job && OF_JOBS.iter().any(|part| text.contains(part))).then_some("a job")
}

/// Returns the canonical path of a local file that exists.
fn existing((namespace, name): &DatasetName) -> Option<PathBuf> {
    (namespace == "file")
        .then(|| fs::canonicalize(Path::new(name)).ok())
        .flatten()
}
