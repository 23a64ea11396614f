//! The final names of an output: files, or objects in an object store.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use batch_runtime::OutputPath;

use super::identity::check_regular;
use super::output_position::OutputPosition;
use super::part::{Complete, check_content};
use super::store::Destination;
use super::url;
use crate::dataset::{DatasetName, of_file};
use crate::error::ResourceError;

/// Where the files of an output get their final names.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// The path; for an object, the path of its spool.
    path: PathBuf,
    /// True if there are several files, with numbers in their names.
    is_numbered: bool,
    objects: Option<Destination>,
    /// The output, for messages.
    output: String,
}

impl Target {
    pub(super) fn new(
        output: &OutputPath,
        is_numbered: bool,
        spool: Option<&Path>,
        options: &[String],
    ) -> io::Result<Self> {
        if !output.is_url() {
            return Ok(Self {
                path: output.path().to_owned(),
                is_numbered,
                objects: None,
                output: url::redact(output.as_str()),
            });
        }
        let output = output.as_str();
        let objects = Destination::new(output, options)?;
        let spool = spool.filter(|spool| !spool.as_os_str().is_empty()).ok_or_else(|| {
            io::Error::other(
                "the property `spool` is missing; set it to a local directory, which holds the data until the step \
                 completes",
            )
        })?;
        let (folder, name) = objects.spool_name();
        Ok(Self {
            path: std::path::absolute(spool.join(folder).join(name))?,
            is_numbered,
            objects: Some(objects),
            output: url::redact(output),
        })
    }

    pub(super) fn is_object(&self) -> bool {
        self.objects.is_some()
    }

    /// Creates the directory that the data is written to.
    pub(super) fn create_directory(&self) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), fs::create_dir_all)
    }

    /// Returns the path of a file until it gets its final name.
    pub(super) fn part_path(&self, number: u32) -> PathBuf {
        let mut path = self.final_path(number).into_os_string();
        path.push(".part");
        path.into()
    }

    /// Returns the final path of a file.
    pub(super) fn final_path(&self, number: u32) -> PathBuf {
        if !self.is_numbered {
            return self.path.clone();
        }
        let (stem, extension) = self.split_name();
        self.path.with_file_name(format!("{stem}-{number:04}{extension}"))
    }

    /// Returns the name before the number, and the extension with its dot.
    fn split_name(&self) -> (String, String) {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        match name.split_once('.') {
            Some((stem, extension)) if !stem.is_empty() => (stem.to_owned(), format!(".{extension}")),
            _ => (name.into_owned(), String::new()),
        }
    }

    fn name(&self, number: u32) -> String {
        let path = self.final_path(number);
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// Returns the dataset that a file is.
    pub(super) fn dataset(&self, number: u32) -> DatasetName {
        match &self.objects {
            Some(objects) => objects.dataset(&self.name(number)),
            None => of_file(&self.final_path(number)),
        }
    }

    pub(super) fn exists(&self, number: u32) -> io::Result<bool> {
        match &self.objects {
            Some(objects) => objects.exists(&self.name(number)),
            None => self.final_path(number).try_exists(),
        }
    }

    /// Checks that the output can be published, at the start of the step.
    pub(super) fn start(&self) -> io::Result<()> {
        match &self.objects {
            Some(objects) => objects.start(&self.name(1), &self.part_path(1)),
            None => Ok(()),
        }
    }

    /// Aborts the upload of a file that is written again from its beginning.
    pub(super) fn abort_upload(&self, number: u32) -> io::Result<()> {
        match &self.objects {
            Some(objects) => objects.abort_upload(&self.name(number), &self.part_path(number)),
            None => Ok(()),
        }
    }

    /// Uploads the committed bytes, which a restart never truncates.
    pub(super) fn upload_committed(&self, number: u32, position: u64) -> io::Result<()> {
        match &self.objects {
            Some(objects) => objects.upload_committed(&self.name(number), &self.part_path(number), position),
            None => Ok(()),
        }
    }

    /// Returns the files that are complete before the file of a checkpoint. All files of the output have their temporary names afterwards: if
    /// the process died while it published them, those that the checkpoint recognises get these names back.
    pub(super) fn complete_files(&self, position: &OutputPosition) -> Result<Complete, ResourceError> {
        let mut published = Vec::new();
        for number in 1..=position.file {
            if !exists(&self.part_path(number))? {
                published.push(number);
            }
        }
        if self.is_object() {
            self.download(&published, position)?;
        }
        let mut complete = Complete::default();
        for number in 1..position.file {
            let path = match self.is_object() || !published.contains(&number) {
                true => self.part_path(number),
                false => self.final_path(number),
            };
            let file = File::open(&path).map_err(|error| lost_file(&path, error))?;
            let read = complete.read(&file);
            read.map_err(|error| ResourceError::new(format!("read `{}`", path.display()), error))?;
        }
        self.check_complete(&complete, position)?;
        self.take_back(&published, position)?;
        Ok(complete)
    }

    /// Checks that the complete files have the contents that a checkpoint records.
    fn check_complete(&self, complete: &Complete, position: &OutputPosition) -> Result<(), ResourceError> {
        if complete.fingerprint() == position.complete {
            return Ok(());
        }
        let (first, last) = (self.final_path(1), self.final_path(position.file - 1));
        Err(self.fail(
            "resume writing",
            io::Error::other(format!(
                "the files from `{}` to `{}` are not those that were complete at the last checkpoint; restore them, or run `abandon` \
                 for this execution and `start` the job again",
                first.display(),
                last.display()
            )),
        ))
    }

    /// Renames published files back to their temporary names.
    fn take_back(&self, published: &[u32], position: &OutputPosition) -> Result<(), ResourceError> {
        let fail = |error| self.fail("resume writing", error);
        for number in published.iter().copied() {
            let (part, path) = (self.part_path(number), self.final_path(number));
            let is_last = number == position.file;
            let is_unknown = is_last && position.length == 0 && published.len() < number as usize;
            // The last file may be one of an earlier run, as long as the others are not published.
            if self.is_object() || !exists(&path)? || is_unknown {
                continue;
            }
            if is_last {
                let checked = File::open(&path).and_then(|file| check_content(&file, position));
                checked.map_err(fail)?;
            }
            rename(&path, &part)?;
        }
        Ok(())
    }

    /// Downloads published objects to the spool.
    fn download(&self, published: &[u32], position: &OutputPosition) -> Result<(), ResourceError> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        let fail = |error| self.fail("resume writing", error);
        self.create_directory().map_err(fail)?;
        for number in published.iter().copied() {
            let is_last = number == position.file;
            if is_last && position.length == 0 {
                continue;
            }
            let check = |file: &File| match is_last {
                true => check_content(file, position),
                false => Ok(()),
            };
            let taken = objects.take_back(&self.name(number), &self.part_path(number), check);
            taken.map_err(fail)?;
        }
        Ok(())
    }

    /// Gives a file its final name.
    pub(super) fn publish(&self, number: u32) -> Result<(), ResourceError> {
        let part = self.part_path(number);
        match &self.objects {
            Some(objects) => {
                let published = objects.publish(&self.name(number), &part);
                published.map_err(|error| self.fail("publish", error))
            }
            None => {
                self.check_regular(number)?;
                rename(&part, &self.final_path(number))
            }
        }
    }

    /// Fails if the final name is taken by something that a file must not replace.
    pub(super) fn check_regular(&self, number: u32) -> Result<(), ResourceError> {
        if self.is_object() {
            return Ok(());
        }
        let path = self.final_path(number);
        check_regular(&path).map_err(|error| match self.is_numbered {
            true => ResourceError::new(format!("write `{}`", path.display()), error),
            false => self.fail("write", error),
        })
    }

    /// Deletes the published files with higher numbers, which an earlier run has left; the last one first, so that a process that dies
    /// leaves no gap between them.
    pub(super) fn delete_after(&self, number: u32) -> Result<(), ResourceError> {
        let left = self
            .published_after(number)
            .map_err(|error| self.fail("list", error))?;
        left.into_iter().rev().try_for_each(|number| self.delete(number))
    }

    /// Returns the numbers of published files after `number`, without a gap: `sales-2025.csv` is no file of `sales.csv`.
    pub(super) fn published_after(&self, number: u32) -> io::Result<Vec<u32>> {
        let mut found = Vec::new();
        let mut next = number + 1;
        while self.is_numbered && self.exists(next)? {
            found.push(next);
            next += 1;
        }
        Ok(found)
    }

    /// Deletes a file that is not published.
    pub(super) fn delete_part(&self, number: u32) -> Result<(), ResourceError> {
        self.abort_upload(number)
            .map_err(|error| self.fail("delete", error))?;
        remove(&self.part_path(number))
    }

    /// Deletes a file that is not published, and the published one.
    pub(super) fn delete(&self, number: u32) -> Result<(), ResourceError> {
        self.delete_part(number)?;
        match &self.objects {
            Some(objects) => {
                let deleted = objects.delete(&self.name(number));
                deleted.map_err(|error| self.fail("delete", error))
            }
            None => remove(&self.final_path(number)),
        }
    }

    /// Makes the final names durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        match self.is_object() {
            true => Ok(()),
            false => sync_folder(&self.path),
        }
    }

    fn fail(&self, action: &str, error: io::Error) -> ResourceError {
        ResourceError::new(format!("{action} `{}`", self.output), error)
    }
}

/// Returns whether there is a file. An error is not its absence.
pub(super) fn exists(path: &Path) -> Result<bool, ResourceError> {
    let found = path.try_exists();
    found.map_err(|error| ResourceError::new(format!("look for `{}`", path.display()), error))
}

/// The error of a complete file that cannot be opened.
fn lost_file(path: &Path, error: io::Error) -> ResourceError {
    let cause = match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(
            "the file, which was complete at the last checkpoint, does not exist any more; restore it, or launch the job with other \
             parameters",
        ),
        _ => error,
    };
    ResourceError::new(format!("resume writing `{}`", path.display()), cause)
}

/// Deletes a file, if it exists.
fn remove(path: &Path) -> Result<(), ResourceError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ResourceError::new(format!("delete `{}`", path.display()), error))
        }
        _ => Ok(()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), ResourceError> {
    let fail = |error| {
        let action = format!("rename `{}` to `{}`", from.display(), to.display());
        ResourceError::new(action, error)
    };
    fs::rename(from, to).map_err(fail)
}

/// Makes the new name durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
