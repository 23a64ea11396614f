//! The plan of a move: which files it moves where. By it, a restart after a kill recognises the files that are moved.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::task::Task;
use crate::publish::publish;

/// A source and its target.
pub(super) type Pair = (PathBuf, PathBuf);

/// A plan, stored in the target directory as a hidden file, which the next job instance replaces.
pub(super) struct MovePlan<'a> {
    path: PathBuf,
    task: &'a Task,
    stored: Stored,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    job: String,
    step: String,
    instance: i64,
    resource: String,
    /// Sources and targets.
    files: Vec<(String, String)>,
}

impl<'a> MovePlan<'a> {
    /// Reads the plan of an earlier execution of the same instance, if there is one.
    pub(super) fn open(directory: &Path, task: &'a Task) -> io::Result<Self> {
        let empty = Stored {
            job: task.job.id().to_owned(),
            step: task.step.id().to_owned(),
            instance: task.instance().0,
            resource: task.resource.as_str().to_owned(),
            files: Vec::new(),
        };
        // Partitions share a step's id, but hardly a resource.
        let key = format!("{}\0{}\0{}", empty.job, empty.step, empty.resource);
        let path = directory.join(format!(".moved-{:08x}", crc32fast::hash(key.as_bytes())));
        let stored = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // Another program's file, or a plan of a newer version, is not a plan of this instance.
            result => serde_json::from_slice::<Stored>(&result?).ok(),
        };
        let is_same = |stored: &Stored| {
            (&stored.job, &stored.step, stored.instance, &stored.resource)
                == (&empty.job, &empty.step, empty.instance, &empty.resource)
        };
        let stored = stored.filter(is_same).unwrap_or(empty);
        Ok(Self { path, task, stored })
    }

    /// Returns the number of files that have been moved.
    pub(super) fn moved(&self) -> usize {
        let files = self.stored.files.iter();
        files.filter(|(source, target)| is_moved(source, target)).count()
    }

    /// Stores the moved files and further ones, before those are moved.
    pub(super) fn add(&mut self, pairs: &[Pair]) -> io::Result<()> {
        self.stored
            .files
            .retain(|(source, target)| is_moved(source, target));
        let pairs = pairs.iter().map(|(source, target)| (text(source), text(target)));
        self.stored.files.extend(pairs);
        let json = serde_json::to_vec(&self.stored)?;
        publish(&self.path, self.task.instance(), |file| {
            io::Write::write_all(file, &json)
        })
    }
}

fn is_moved(source: &str, target: &str) -> bool {
    fs::symlink_metadata(source).is_err() && fs::symlink_metadata(target).is_ok()
}

/// Returns a path as text. One that is not UTF-8 matches no file later, so it counts as not moved.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
