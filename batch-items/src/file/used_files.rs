//! The files that an output must neither replace nor delete: those that the running steps read or write, databases, and jobs.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batch_runtime::JobExecutionId;
use quick_xml::events::Event;

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
pub(crate) fn is_used(datasets: &Datasets, output: &DatasetName, own: &[UsedFiles]) -> bool {
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

/// Returns the kind of a file that an output must not replace: a SQLite database, which may be the repository, its log, or a job.
pub(crate) fn kind_to_keep(output: &DatasetName) -> Option<&'static str> {
    if is_log(output) {
        return Some("a log of a SQLite database");
    }
    let path = existing(output)?;
    if is_database(&path) {
        return Some("a SQLite database");
    }
    is_job(&path).unwrap_or_default().then_some("a job")
}

/// Returns whether a file is, or would be, a log of a database beside it.
fn is_log((namespace, name): &DatasetName) -> bool {
    let of = ["-wal", "-shm", "-journal"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix));
    namespace == "file" && of.is_some_and(|database| is_database(Path::new(database)))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}

fn is_database(path: &Path) -> bool {
    // To close a database that is open would release SQLite's locks on it; it has a log beside it.
    if with_suffix(path, "-wal").exists() {
        return true;
    }
    let mut beginning = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(16).read_to_end(&mut beginning).ok());
    read.is_some() && beginning == b"SQLite format 3\0"
}

/// Opens a file; opening a pipe could wait for ever.
fn open_regular(path: &Path) -> Option<fs::File> {
    let is_file = fs::metadata(path).ok()?.is_file();
    is_file.then(|| fs::File::open(path).ok()).flatten()
}

/// Returns whether a file is Job XML: its root is a `job` with an id.
fn is_job(path: &Path) -> Option<bool> {
    /// Comments may precede the root.
    const MOST: u64 = 1 << 20;
    let mut file = BufReader::new(open_regular(path)?.take(MOST));
    let beginning = file.fill_buf().ok()?;
    let beginning = beginning.strip_prefix("\u{feff}".as_bytes()).unwrap_or(beginning);
    if beginning.trim_ascii_start().first() != Some(&b'<') {
        return None;
    }
    let (mut reader, mut buffer) = (quick_xml::Reader::from_reader(file), Vec::new());
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).ok()? {
            Event::Start(root) | Event::Empty(root) => {
                let has_id = root.try_get_attribute("id").ok()?.is_some();
                return Some(root.local_name().as_ref() == "job" && has_id);
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// Returns the canonical path of a local file that exists.
fn existing((namespace, name): &DatasetName) -> Option<PathBuf> {
    (namespace == "file")
        .then(|| fs::canonicalize(Path::new(name)).ok())
        .flatten()
}
