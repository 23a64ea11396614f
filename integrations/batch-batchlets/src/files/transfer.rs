//! Copies, moves and compresses files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use batch_runtime::prelude::*;

use super::format::Format;
use super::plan::{MovePlan, Pair};
use super::task::{Decision, IfExists, IfMissing, Target, Task};
use crate::publish::{directory_of, publish, sync_directory};
use batch_items::ResourceError;
use batch_items::file::{FileId, FoundFile, Whole};

/// The operation on each file.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Copy,
    Move,
    Compress(Format),
}

/// An operation from each file of a resource to a target.
pub(super) struct Transfer<'a> {
    pub(super) task: &'a Task,
    pub(super) action: Action,
    /// Without a target, the files are written beside their sources.
    pub(super) target: Option<&'a Target>,
    pub(super) if_exists: IfExists,
}

impl Transfer<'_> {
    /// Returns the exit status.
    pub(super) fn run(&self) -> Result<String, BatchError> {
        let files = match (self.action, self.target) {
            (Action::Move, Some(target)) => self.move_all(target),
            _ => self
                .task
                .files(IfMissing::Fail)
                .and_then(|files| self.transfer_all(&self.pairs(files))),
        };
        self.task.exit_status(files)
    }

    /// Moves all files. Those that an execution of this instance has moved before it was killed count too.
    fn move_all(&self, target: &Target) -> Result<usize, BatchError> {
        let pairs = self.pairs(self.task.resource.files()?);
        let directory = match target.is_directory(&self.task.resource) {
            true => &target.0,
            false => directory_of(&target.0),
        };
        let failed = |error| {
            ResourceError::new(
                format!("keep the plan of the move in {}", directory.display()),
                error,
            )
        };
        let mut plan = MovePlan::open(directory, self.task).map_err(failed)?;
        let moved = plan.moved();
        if pairs.is_empty() && moved == 0 {
            self.task.missing(IfMissing::Fail)?;
        }
        if !pairs.is_empty() {
            plan.add(&pairs).map_err(failed)?;
        }
        Ok(moved + self.transfer_all(&pairs)?)
    }

    /// Returns each source with its target.
    fn pairs(&self, files: Vec<FoundFile>) -> Vec<Pair> {
        let suffix = match self.action {
            Action::Compress(format) => format.suffix(),
            Action::Copy | Action::Move => "",
        };
        let is_directory = self.target.map(|target| target.is_directory(&self.task.resource));
        // A pattern may match what it has compressed before, beside the sources.
        let folder = |path: &Path| Some(std::path::absolute(path).ok()?.parent()?.to_owned());
        let is_result = |(source, target): &Pair| {
            let is_compressed = !suffix.is_empty() && source.to_string_lossy().ends_with(suffix);
            is_compressed && !self.task.resource.is_path() && folder(source) == folder(target)
        };
        let pair = |file: FoundFile| {
            let with_suffix = |path: PathBuf| {
                let mut path = path.into_os_string();
                path.push(suffix);
                PathBuf::from(path)
            };
            let target = match (self.target, is_directory) {
                (Some(target), Some(true)) => target.0.join(with_suffix(file.relative)),
                (Some(target), _) => target.0.clone(),
                (None, _) => with_suffix(file.path.clone()),
            };
            (file.path, target)
        };
        let mut pairs: Vec<Pair> = files.into_iter().map(pair).collect();
        pairs.retain(|pair| !is_result(pair));
        pairs
    }

    /// Returns the number of files that have reached their targets.
    fn transfer_all(&self, pairs: &[Pair]) -> Result<usize, BatchError> {
        self.task.reads(pairs.iter().map(|(source, _)| source.as_path()));
        let targets = pairs.iter().map(|(_, target)| target.as_path());
        match self.target {
            Some(target) => self.task.writes(&target.0.join("*").to_string_lossy(), targets),
            None => self.task.writes(self.task.resource.as_str(), targets),
        }
        let mut transferred = 0;
        for (source, target) in pairs {
            let verb = match self.action {
                Action::Copy => "copy",
                Action::Move => "move",
                Action::Compress(_) => "compress",
            };
            let action = || format!("{verb} {} to {}", source.display(), target.display());
            let done = self.transfer(source, target);
            transferred += usize::from(done.map_err(|error| ResourceError::new(action(), error))?);
        }
        Ok(transferred)
    }

    /// Returns whether the file has reached its target.
    fn transfer(&self, source: &Path, target: &Path) -> io::Result<bool> {
        self.task.proceed()?;
        if is_same_file(source, target) {
            return Err(io::Error::other("both are the same file"));
        }
        let decision = self
            .if_exists
            .decide(target, || self.has_content(source, target))?;
        match (decision, self.action) {
            (Decision::Skip, _) => return Ok(false),
            (Decision::Done, Action::Move) => fs::remove_file(source)?,
            (Decision::Done, _) => {}
            (Decision::Write, Action::Copy) => self.copy(source, target)?,
            (Decision::Write, Action::Move) => self.move_file(source, target)?,
            (Decision::Write, Action::Compress(format)) => self.compress(source, target, format)?,
        }
        Ok(true)
    }

    /// Returns whether the target is what the transfer of the source would write.
    fn has_content(&self, source: &Path, target: &Path) -> io::Result<bool> {
        if !target.is_file() {
            return Ok(false);
        }
        let (mut source, mut target) = (Whole::open(source)?, Whole::open(target)?);
        match self.action {
            Action::Copy | Action::Move if source.length() != target.length() => Ok(false),
            Action::Copy | Action::Move => self.task.same_bytes(&mut source, &mut target),
            Action::Compress(format) => match self.is_compressed(&mut source, target, format) {
                // The target is not compressed, or is damaged.
                Err(_) => self.task.proceed().map(|()| false),
                same => same,
            },
        }
    }

    fn is_compressed(&self, source: &mut Whole, target: Whole, format: Format) -> io::Result<bool> {
        let mut target = format.decoder(target)?;
        self.task.same_bytes(source, &mut target)
    }

    fn copy(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.write(source, target, |from, to| self.task.copy(from, to))
    }

    fn compress(&self, source: &Path, target: &Path, format: Format) -> io::Result<()> {
        self.write(source, target, |from, to| {
            format.encode(to, |encoder| self.task.copy(from, encoder))
        })
    }

    /// Writes the target with the permissions and the time of modification of the source.
    fn write(
        &self,
        source: &Path,
        target: &Path,
        write: impl FnOnce(&mut Whole, &mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let from = File::open(source)?;
        let metadata = from.metadata()?;
        let mut from = Whole::new(from, 0)?;
        publish(target, self.task.instance(), |to| {
            // Before the content, which would be readable for everyone otherwise.
            to.set_permissions(metadata.permissions())?;
            write(&mut from, to)?;
            // Some file systems do not store it.
            let _ = metadata.modified().and_then(|time| to.set_modified(time));
            Ok(())
        })
    }

    fn move_file(&self, source: &Path, target: &Path) -> io::Result<()> {
        fs::create_dir_all(directory_of(target))?;
        // A relative link may be broken in another directory, so the link becomes a copy of its file.
        if fs::symlink_metadata(source)?.is_symlink() {
            self.copy(source, target)?;
            return fs::remove_file(source);
        }
        match fs::rename(source, target) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                self.copy(source, target)?;
                fs::remove_file(source)
            }
            Err(error) => Err(error),
            Ok(()) => {
                remove_other_name(source, target)?;
                sync_directory(directory_of(target))
            }
        }
    }
}

/// Removes the source if it still exists: a rename does nothing if source and target are hard links to the same file.
fn remove_other_name(source: &Path, target: &Path) -> io::Result<()> {
    match fs::symlink_metadata(source) {
        Ok(found) if FileId::of(&found) == FileId::of(&fs::symlink_metadata(target)?) => {
            fs::remove_file(source)
        }
        _ => Ok(()),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
