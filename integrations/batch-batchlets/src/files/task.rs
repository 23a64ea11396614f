//! Parts that all batchlets for files share: the selection of files, the rules for existing targets, and cancellable copies.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use batch_runtime::JobInstanceId;
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;

use crate::cancel::Cancel;
use crate::exit::{STOPPED, completed, counted};
use batch_items::choices;
use batch_items::dataset::{Datasets, of_file};
use batch_items::file::{FilePattern, FoundFile, Whole};

/// Bytes between two checks for a stop.
const BUFFER: usize = 256 * 1024;

/// The reaction to a target that exists with another content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfExists {
    Fail,
    Overwrite,
    Skip,
}

/// The reaction to a resource without files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMissing {
    Fail,
    Ignore,
}

choices! {
    IfExists { "fail" => Fail, "overwrite" => Overwrite, "skip" => Skip }
    IfMissing { "fail" => Fail, "ignore" => Ignore }
}

/// The path of a file or directory that is written; not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target(pub(super) PathBuf);

impl FromStr for Target {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "" => Err("expected the path of a file or directory"),
            path => Ok(Self(path.into())),
        }
    }
}

impl Target {
    /// Returns whether it is a directory, where the files of `resource` keep their names.
    pub(super) fn is_directory(&self, resource: &FilePattern) -> bool {
        let text = self.0.as_os_str().to_string_lossy();
        text.ends_with(std::path::is_separator) || !resource.is_path() || self.0.is_dir()
    }
}

/// The properties and contexts that all batchlets for files share.
#[derive(BatchArtifact)]
pub(super) struct Task {
    /// A path, or a pattern with `*`, `?`, `[..]`, and `**` for directories of any depth.
    #[batch_property(name = "resource")]
    pub(super) resource: FilePattern,
    /// If no file matches: `fail`, or `ignore`, with which the step can be repeated. `deleteFiles` ignores by default, the others fail.
    #[batch_property(name = "if.missing")]
    if_missing: Option<IfMissing>,
    #[batch_context]
    pub(super) job: JobContext,
    #[batch_context]
    pub(super) step: StepContext,
    #[batch_artifact]
    datasets: Datasets,
    pub(super) cancel: Cancel,
}

impl Task {
    pub(super) fn instance(&self) -> JobInstanceId {
        self.job.instance_id()
    }

    /// Returns the files of `resource`. `default` applies if `if.missing` is not set.
    ///
    /// # Errors
    /// When there are none and `if.missing` is `fail`.
    pub(super) fn files(&self, default: IfMissing) -> Result<Vec<FoundFile>, BatchError> {
        let files = self.resource.files()?;
        if files.is_empty() {
            self.missing(default)?;
        }
        Ok(files)
    }

    /// Reports files that are read, as datasets.
    pub(super) fn reads<'f>(&self, files: impl ExactSizeIterator<Item = &'f Path>) {
        let pattern = self.resource.as_str();
        self.datasets
            .report_files(DatasetRole::Input, pattern, files.map(of_file));
    }

    /// Reports files that are written; of many, the folder of a pattern.
    pub(super) fn writes<'f>(&self, pattern: &str, files: impl ExactSizeIterator<Item = &'f Path>) {
        self.datasets
            .report_files(DatasetRole::Output, pattern, files.map(of_file));
    }

    /// Returns an error if `if.missing`, or else `default`, is `fail`.
    pub(super) fn missing(&self, default: IfMissing) -> Result<(), BatchError> {
        if self.if_missing.unwrap_or(default) == IfMissing::Ignore {
            return Ok(());
        }
        Err(BatchError::msg(format!(
            "no file matches {}; set `if.missing` to `ignore` if that is not an error",
            self.resource.as_str()
        )))
    }

    /// Returns the exit status for a number of files. A stopped task has the error of the stop.
    pub(super) fn exit_status(&self, files: Result<usize, BatchError>) -> Result<String, BatchError> {
        match files {
            Err(_) if self.cancel.is_requested() => Ok(STOPPED.into()),
            files => Ok(completed(&self.step, counted(files?, "file"))),
        }
    }

    /// Returns an error after a stop, and reports that the step is alive.
    pub(super) fn proceed(&self) -> io::Result<()> {
        self.step.heartbeat();
        match self.cancel.is_requested() {
            true => Err(io::Error::other("stopped")),
            false => Ok(()),
        }
    }

    /// Copies all bytes, until a stop.
    pub(super) fn copy(&self, from: &mut Whole, to: &mut impl Write) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            self.proceed()?;
            match read(from, &mut buffer)? {
                0 => return Ok(()),
                length => to.write_all(&buffer[..length])?,
            }
        }
    }

    /// Returns whether two readers return the same bytes.
    pub(super) fn same_bytes(&self, one: &mut impl Read, other: &mut impl Read) -> io::Result<bool> {
        let (mut first, mut second) = (vec![0; BUFFER], vec![0; BUFFER]);
        loop {
            self.proceed()?;
            let (length, other_length) = (read_full(one, &mut first)?, read_full(other, &mut second)?);
            if first[..length] != second[..other_length] {
                return Ok(false);
            }
            if length == 0 {
                return Ok(true);
            }
        }
    }
}

/// Reads once; a signal is not an error.
fn read(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reads until the buffer is full or the end is reached.
fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read(from, &mut buffer[filled..])? {
            0 => break,
            length => filled += length,
        }
    }
    Ok(filled)
}

/// What to do with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Write it.
    Write,
    /// It has the content already, perhaps from an execution that was killed.
    Done,
    /// Leave it as it is.
    Skip,
}

impl IfExists {
    /// Decides about a target, with a function that returns whether it has the content that would be written.
    ///
    /// # Errors
    /// When it has another content and the rule is `fail`.
    pub(super) fn decide(
        self,
        target: &Path,
        has_content: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<Decision> {
        if self == Self::Overwrite || fs::symlink_metadata(target).is_err() {
            return Ok(Decision::Write);
        }
        match (has_content()?, self) {
            (true, _) => Ok(Decision::Done),
            (false, Self::Skip) => Ok(Decision::Skip),
            (false, _) => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the target exists with another content; remove it, or set `if.exists` to `overwrite` or `skip`",
            )),
        }
    }
}
