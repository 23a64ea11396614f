//! The output of file writers, exactly once.
//!
//! The bytes go to a temporary file beside the final one. Each checkpoint holds its length, and a restart truncates
//! it to that. The file gets its final name when the step completes. Objects are uploaded from the temporary file.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use batch_runtime::observer::DatasetRole;
use batch_runtime::{BatchArtifact, BatchError, OutputPath};
use crc32fast::Hasher;

use super::compression::Compression;
use super::identity::{FileId, FileState, lost};
use super::locked::{LockError, LockedFile};
use super::output_position::OutputPosition;
use super::part::{Complete, Mark, Part, check_content, check_length};
use super::resource::Whole;
use super::target::{Target, exists};
use super::url;
use super::used_files::{self, UsedFiles};
use crate::choices;
use crate::dataset::Datasets;
use crate::error::ResourceError;

/// The file that a writer writes, exactly once.
///
/// Every file writer has these properties:
///
/// | property | default | |
/// |---|---|---|
/// | `output` | required | the path, whose missing directories are created; or, with the feature `object-store`, an `s3://`, `gs://` or `az://` URL |
/// | `spool` | none | the local directory for the data of an object until the step completes; required for URLs |
/// | `store.options` | none | for URLs of object stores and HTTP: `name=value`, separated by commas |
/// | `if.exists` | `overwrite` | `overwrite` also deletes the files of an earlier, longer run: those with the next numbers, up to the first missing one; `fail` looks at the start and at the end (for objects at the start only); `append` copies the existing file first, ends its last line, and is not possible for objects |
/// | `if.empty` | `keep` | `delete`: without items there is no file |
/// | `sync` | `checkpoint` | when the data is forced to the disk: before each checkpoint, at the `finish` of the step, or `never` |
/// | `max.items.per.file` | none | starts a new file after so many items: `out-0001.csv`, `out-0002.csv` |
/// | `compression` | by extension | `none`, `gzip` or `zstd`; each checkpoint ends a complete compressed stream |
///
/// Until the step completes, the data is in a file with the suffix `.part`, which is locked. An existing file is replaced at
/// once, by renaming; the new one has its permissions. A link, a pipe or a device is not replaced: the step fails.
///
/// An object appears at once when the step completes. Until then, the data is in the directory `spool`, which a restart needs. It is
/// uploaded in parts of 16 MiB while the step runs. A step that is abandoned leaves its spool, and an incomplete multipart upload, which
/// a lifecycle rule of the bucket removes. An object has at most 156 GiB; `max.items.per.file` writes several.
///
/// With `sync` = `finish` or `never`, a power failure may lose data that a checkpoint counts: the restart then fails, because
/// the file is too short.
///
/// At each checkpoint, and before the files get their final names, the writer proves that the file with the suffix `.part` is still the one
/// that it opened, and has the length that it wrote. If it was removed, moved, replaced or changed, the step fails. A restart compares the
/// contents. With `append`, and with `fail`, the step also fails if another program writes the file of the final name meanwhile.
///
/// A writer of an own format uses it as a nested artifact:
///
/// ```
/// use batch_items::file::{FileOutput, OutputPosition};
/// use batch_items::ResourceError;
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct LineWriter {
///     #[batch_artifact]
///     output: FileOutput,
/// }
///
/// #[item_writer]
/// impl LineWriter {
///     #[open]
///     fn open(&mut self, checkpoint: Option<OutputPosition>) -> Result<(), ResourceError> {
///         self.output.open(checkpoint)
///     }
///
///     #[write_items]
///     fn write(&mut self, lines: &[String]) -> Result<(), ResourceError> {
///         let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
///         self.output.write(text.as_bytes(), lines.len())
///     }
///
///     #[get_checkpoint_info]
///     fn checkpoint(&mut self) -> Result<OutputPosition, ResourceError> {
///         self.output.checkpoint()
///     }
///
///     #[finish]
///     fn finish(&mut self) -> Result<(), ResourceError> {
///         self.output.finish()
///     }
///
///     #[close]
///     fn close(&mut self) {
///         self.output.close();
///     }
/// }
/// ```
#[derive(BatchArtifact)]
pub struct FileOutput {
    #[batch_property(name = "output")]
    path: OutputPath,
    #[batch_property(name = "if.exists", value = "overwrite")]
    if_exists: IfExists,
    #[batch_property(name = "if.empty", value = "keep")]
    if_empty: IfEmpty,
    #[batch_property(name = "sync", value = "checkpoint")]
    sync: Sync,
    #[batch_property(name = "max.items.per.file")]
    max_items: Option<NonZeroU64>,
    #[batch_property(name = "compression")]
    compression: Option<Compression>,
    #[batch_property(name = "spool")]
    spool: Option<PathBuf>,
    #[batch_property(name = "store.options")]
    options: Vec<String>,
    #[batch_artifact]
    datasets: Datasets,
    target: Target,
    open: Option<Part>,
    /// The registrations of the files.
    used: Vec<UsedFiles>,
    complete: Complete,
    mark: Option<Mark>,
    /// The file that the output appends to, when it was copied.
    base: Option<FileState>,
    /// The last position of this run, and the identity of its file: their contents need no check.
    last: Option<(OutputPosition, FileId)>,
}

/// What a writer does if its file exists at the start of the step: the property `if.exists`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// `overwrite`: it is replaced when the step completes. The default.
    #[default]
    Overwrite,
    /// `fail`: the step fails.
    Fail,
    /// `append`: the items follow its content.
    Append,
}

/// What becomes of a file without items: the property `if.empty`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfEmpty {
    /// `keep`: the file is created. The default.
    #[default]
    Keep,
    /// `delete`: there is no file, and an existing one is deleted.
    Delete,
}

/// When data is forced to the disk: the property `sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// `checkpoint`: before each checkpoint commits. The default.
    #[default]
    Checkpoint,
    /// `finish`: before the file gets its final name.
    Finish,
    /// `never`: when the operating system does it.
    Never,
}

choices! {
    IfExists { "overwrite" => Overwrite, "fail" => Fail, "append" => Append }
    IfEmpty { "keep" => Keep, "delete" => Delete }
    Sync { "checkpoint" => Checkpoint, "finish" => Finish, "never" => Never }
}

/// A file that items are appended to.
pub struct Existing {
    /// As much of its content as a header may have; `None` if it has a header that is not one of columns.
    pub(crate) beginning: Option<Vec<u8>>,
    /// True if its last line has an end.
    pub(crate) is_ended: bool,
}

impl Existing {
    fn read(mut content: impl BufRead) -> io::Result<Self> {
        /// A row that is longer is not a header.
        const LONGEST: u64 = 1 << 20;
        let mut beginning = Vec::new();
        (&mut content).take(LONGEST).read_to_end(&mut beginning)?;
        let mut last = beginning.last().copied();
        loop {
            let more = content.fill_buf()?;
            let Some(byte) = more.last() else { break };
            last = Some(*byte);
            let length = more.len();
            content.consume(length);
        }
        Ok(Self {
            beginning: last.is_some().then_some(beginning),
            is_ended: matches!(last, Some(b'\n' | b'\r')),
        })
    }
}

/// The buffer is written when it is longer, at the latest by the next checkpoint.
const FULL: usize = 1 << 20;

impl FileOutput {
    /// Positions at a checkpoint: everything after it is removed. Starts a new file for `None`.
    ///
    /// # Errors
    /// If the file cannot be written, another process writes it, or it is not the one of the checkpoint.
    pub fn open(&mut self, checkpoint: Option<OutputPosition>) -> Result<(), ResourceError> {
        self.open = None;
        self.used.clear();
        let target = Target::new(
            &self.path,
            self.max_items.is_some(),
            self.spool.as_deref(),
            &self.options,
        );
        self.target = target.map_err(|error| self.fail("write", error))?;
        if checkpoint.as_ref().is_some_and(|position| position.file == 0) {
            let damaged = "its checkpoint is damaged: the number of the file is 0";
            return Err(self.fail("resume writing", io::Error::other(damaged)));
        }
        let part = match &checkpoint {
            None => self.start(),
            Some(position) => self.resume(position),
        };
        self.open = Some(part?);
        self.report();
        Ok(())
    }

    fn start(&mut self) -> Result<Part, ResourceError> {
        self.complete = Complete::default();
        self.base = None;
        self.check_settings()?;
        self.check_untouched(1)?;
        self.check_used(1)?;
        self.create_first()
    }

    /// Fails if another artifact of the step uses one of the files so far, of which the last has this number, or one that will be deleted
    /// because an earlier run wrote more of them.
    fn check_used(&self, last: u32) -> Result<(), ResourceError> {
        let left = self.target.published_after(last);
        let mut left = left.map_err(|error| self.fail("write", error))?.into_iter();
        (1..=last).try_for_each(|number| self.check_free_of_others(number))?;
        left.try_for_each(|number| self.check_free_of_others(number))
    }

    /// Fails if another artifact of the step uses a file of the output, or if it is a database or a job.
    fn check_free_of_others(&self, number: u32) -> Result<(), ResourceError> {
        let file = self.target.dataset(number);
        let path = self.target.final_path(number);
        let cause = match used_files::kind_to_keep(&file) {
            Some(kind) => format!(
                "`{}` is {kind}, which no output replaces, extends or deletes; set another `output`, or delete the file first",
                path.display()
            ),
            None if used_files::is_used(&self.datasets, &file, &self.used) => format!(
                "the step reads this file, or writes it by another artifact, and `{}` would be replaced or deleted; set another `output`",
                path.display()
            ),
            None => return Ok(()),
        };
        Err(self.fail("write", io::Error::other(cause)))
    }

    fn resume(&mut self, position: &OutputPosition) -> Result<Part, ResourceError> {
        let last = self.last.take().filter(|(last, _)| last == position);
        if last.is_some() {
            self.complete.return_to(position);
            self.complete.prove(|number| self.target.part_path(number))?;
        } else {
            self.complete = self.target.complete_files(position)?;
        }
        self.base = position.base;
        // An empty file has no content to recognise it by; a step that completed without items may have deleted it.
        let is_empty = position.length == 0 || (position.items == 0 && self.deletes_empty());
        if is_empty {
            return self.create_again(position.file);
        }
        self.reopen(position, last.map(|(_, id)| id))
    }

    /// Reports the current file, and registers it as used.
    fn report(&mut self) {
        if let Some(part) = &self.open {
            let file = self.target.dataset(part.number);
            let used = UsedFiles::of(&self.datasets, std::iter::once(file.clone()));
            self.used.push(used);
            self.datasets.report(DatasetRole::Output, file);
        }
    }

    /// Returns whether the current file is empty, so that a header has to be written.
    pub fn is_empty(&self) -> bool {
        let open = self.open.as_ref();
        open.is_none_or(|part| part.length == 0 && part.buffer.is_empty())
    }

    /// Returns the number of items that fit in the current file, which `max.items.per.file` limits. If it is 0, [`roll`](Self::roll) starts the
    /// next file.
    pub fn room(&self) -> u64 {
        let items = self.open.as_ref().map_or(0, |part| part.items);
        self.max_items
            .map_or(u64::MAX, |most| most.get().saturating_sub(items))
    }

    /// Returns the number of items in the current file.
    pub fn items(&self) -> u64 {
        self.open.as_ref().map_or(0, |part| part.items)
    }

    /// Returns the file that the output appends to, with what was appended, unless it is empty.
    pub(crate) fn existing(&self) -> Result<Option<Existing>, ResourceError> {
        let Some(part) = self.open.as_ref().filter(|part| part.length > 0) else {
            return Ok(None);
        };
        let path = self.target.part_path(part.number);
        let read = || {
            let content = self.compression().reader(Whole::open(&path)?)?;
            Existing::read(BufReader::new(content))
        };
        read().map(Some).map_err(|error| self.fail("append to", error))
    }

    /// Returns whether the output appends to a file that existed before the step.
    pub fn appends(&self) -> bool {
        self.if_exists == IfExists::Append
    }

    /// Returns the path, or the URL without secrets.
    pub fn describe(&self) -> String {
        url::redact(self.path.as_str())
    }

    /// Appends bytes, which contain so many items, to the current file. They are in memory until the next checkpoint, or
    /// until there are many. If it fails, none of them are in the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, bytes: &[u8], items: usize) -> Result<(), ResourceError> {
        let before = self.part()?.buffer.len();
        self.part()?.buffer.extend_from_slice(bytes);
        self.written(before, items)
    }

    /// Returns the buffer for a format to append to; [`written`](Self::written) or truncating it must follow.
    pub(crate) fn buffer(&mut self) -> Result<&mut Vec<u8>, ResourceError> {
        Ok(&mut self.part()?.buffer)
    }

    /// Counts items that were appended to the buffer, which had this length before.
    pub(crate) fn written(&mut self, before: usize, items: usize) -> Result<(), ResourceError> {
        if self.part()?.buffer.len() >= FULL
            && let Err(error) = self.flush()
        {
            self.part()?.buffer.truncate(before);
            return Err(error);
        }
        self.part()?.items += items as u64;
        Ok(())
    }

    /// Ends the current file and starts the next one.
    ///
    /// # Errors
    /// If a file cannot be written, or has changed since it was opened.
    pub fn roll(&mut self) -> Result<(), ResourceError> {
        self.flush()?;
        self.force(Sync::Finish)?;
        self.prove()?;
        let number = self.part()?.number.checked_add(1);
        let number = number.ok_or_else(|| self.fail("write", io::Error::other("it has too many files")))?;
        self.check_free_of_others(number)?;
        if let Some(part) = &self.open {
            let added = self.complete.add(&part.file, part.content.clone().finalize());
            added.map_err(|error| self.fail("write", error))?;
        }
        self.open = Some(self.create(number)?);
        self.report();
        Ok(())
    }

    /// Notes the state for `undo`.
    pub(crate) fn mark(&mut self) {
        self.mark = self.open.as_ref().map(|part| Mark {
            number: part.number,
            length: part.length,
            items: part.items,
            buffered: part.buffer.len(),
            content: part.content.clone(),
        });
    }

    /// Removes what was written since the mark. Returns `false` where that is not possible: later calls fail until the output is
    /// opened again.
    pub(crate) fn undo(&mut self) -> bool {
        let is_plain = self.compression() == Compression::None;
        let (Some(mark), Some(part)) = (&self.mark, &mut self.open) else {
            return true;
        };
        let undone = !part.broken && part.undo(mark, is_plain).is_ok();
        if !undone {
            self.mark_broken();
        }
        undone
    }

    /// Returns the file with everything that was written, and its length. What is read from it moves the position of this handle only
    /// until the next write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn written_file(&mut self) -> Result<(File, u64), ResourceError> {
        self.flush()?;
        let part = self.part()?;
        match part.file.try_clone() {
            Ok(file) => Ok((file, part.length)),
            Err(error) => Err(self.fail("read", error)),
        }
    }

    /// Returns whether the file is compressed as a whole.
    pub fn is_compressed(&self) -> bool {
        self.compression() != Compression::None
    }

    /// Makes all later calls fail until the output is opened again: items of a failed call are left in it.
    pub fn mark_broken(&mut self) {
        if let Some(part) = &mut self.open {
            part.broken = true;
        }
    }

    /// Returns the error of a call that has left items in the output, which only a rollback of the interval removes.
    pub fn broken_by(&mut self, error: impl Into<BatchError>) -> BatchError {
        self.mark_broken();
        BatchError::with_rollback(error)
    }

    /// Writes everything to the file and returns its length. With `sync` = `checkpoint` the data is on the disk afterwards.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn checkpoint(&mut self) -> Result<OutputPosition, ResourceError> {
        self.flush()?;
        self.force(Sync::Checkpoint)?;
        self.prove()?;
        let (complete, base) = (self.complete.fingerprint(), self.base);
        let part = self.part()?;
        let position = OutputPosition {
            file: part.number,
            length: part.length,
            items: part.items,
            content: part.content.clone().finalize(),
            complete,
            base,
        };
        let id = part.file.id();
        // The transaction of the previous checkpoint has committed, or the output would have been opened again.
        let committed = std::mem::replace(&mut part.checkpoint, position.length);
        let prepared = self.target.upload_committed(position.file, committed);
        prepared.map_err(|error| self.fail("write", error))?;
        self.last = Some((position.clone(), id));
        Ok(position)
    }

    /// Completes the output: forces it to the disk, unless `sync` = `never`, and gives it its final name.
    ///
    /// # Errors
    /// If the file cannot be written or renamed.
    pub fn finish(&mut self) -> Result<(), ResourceError> {
        let compression = self.compression();
        if compression != Compression::None && self.is_empty() {
            // A compressed file has at least one stream.
            let flushed = self.part()?.flush(compression);
            flushed.map_err(|error| self.fail("write", error))?;
        }
        self.flush()?;
        self.force(Sync::Finish)?;
        self.prove()?;
        self.complete.prove(|number| self.target.part_path(number))?;
        let part = self.part()?;
        let number = part.number;
        self.check_used(number)?;
        let part = self.part()?;
        if number == 1 && part.items == 0 && self.deletes_empty() {
            self.open = None;
            self.target.delete(1)?;
            return self.target.delete_after(1);
        }
        self.check_untouched(number)?;
        self.publish()?;
        self.target.delete_after(number)?;
        if self.sync != Sync::Never {
            let synced = self.target.sync();
            synced.map_err(|error| self.fail("write the directory of", error))?;
        }
        self.open = None;
        Ok(())
    }

    /// Gives all files their final names.
    fn publish(&mut self) -> Result<(), ResourceError> {
        let number = self.part()?.number;
        for number in 1..=number {
            self.target.publish(number)?;
        }
        if self.target.is_object() {
            return Ok(());
        }
        self.complete.prove(|number| self.target.final_path(number))?;
        let path = self.target.final_path(number);
        let part = self.part()?;
        let proven = part.file.prove_at(&path, part.length);
        proven.map_err(|error| self.fail("write", error))
    }

    /// Fails unless the file that is open is at its path, with all that was written to it.
    fn prove(&mut self) -> Result<(), ResourceError> {
        let part = self.part()?;
        let (number, proven) = (part.number, part.file.prove(part.length));
        proven.map_err(|error| {
            let path = self.target.part_path(number);
            ResourceError::new(format!("write `{}`", path.display()), error)
        })
    }

    /// Returns whether an output without items is deleted.
    fn deletes_empty(&self) -> bool {
        self.if_empty == IfEmpty::Delete && !self.appends()
    }

    /// Closes the file.
    pub fn close(&mut self) {
        self.open = None;
    }

    fn part(&mut self) -> Result<&mut Part, ResourceError> {
        let cause = match &mut self.open {
            Some(part) if !part.broken => return Ok(part),
            Some(_) => "an earlier error has left items in it that are not committed; restart the job",
            None => "it is not open",
        };
        let path = url::redact(self.path.as_str());
        Err(ResourceError::new(format!("write `{path}`"), cause))
    }

    /// Writes the buffer to the file. If that fails, it can be repeated.
    fn flush(&mut self) -> Result<(), ResourceError> {
        let compression = self.compression();
        let part = self.part()?;
        if part.buffer.is_empty() {
            return Ok(());
        }
        match part.flush(compression) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail("write", error)),
        }
    }

    /// Forces the data to the disk, if the setting requires it at this point.
    fn force(&mut self, now: Sync) -> Result<(), ResourceError> {
        let wanted = self.sync == now || (self.sync == Sync::Checkpoint && now == Sync::Finish);
        if !wanted {
            return Ok(());
        }
        match self.part()?.file.sync_data() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail("write", error)),
        }
    }

    pub(super) fn compression(&self) -> Compression {
        self.compression
            .unwrap_or_else(|| Compression::of(self.path.path()))
    }

    /// Checks the settings, at the start of the step.
    fn check_settings(&self) -> Result<(), ResourceError> {
        let cause = match self.if_exists {
            IfExists::Append if self.target.is_object() => {
                "an object cannot be appended to; set `if.exists` to `overwrite` or `fail`"
            }
            IfExists::Append if self.max_items.is_some() => {
                "`if.exists` = `append` cannot be combined with `max.items.per.file`"
            }
            _ => return self.target.check_regular(1),
        };
        Err(self.fail("write", io::Error::other(cause)))
    }

    /// Checks the rules for existing files, at the start of the step and before `number` files are published.
    fn check_untouched(&self, number: u32) -> Result<(), ResourceError> {
        let checked = match self.if_exists {
            IfExists::Overwrite => Ok(()),
            IfExists::Fail => self.check_free(number),
            IfExists::Append => self.check_base(),
        };
        checked.map_err(|error| self.fail("write", error))
    }

    fn check_free(&self, number: u32) -> io::Result<()> {
        // An object is not taken back, so at the end it may be the one that a run which died has published.
        if self.target.is_object() && self.open.is_some() {
            return Ok(());
        }
        for number in (1..=number).chain(self.target.published_after(number)?) {
            if self.target.exists(number)? {
                let taken = match self.max_items {
                    Some(_) => format!("`{}`", self.target.final_path(number).display()),
                    None => "it".to_owned(),
                };
                return Err(io::Error::other(format!(
                    "{taken} exists already; set `if.exists` to `overwrite` to replace it"
                )));
            }
        }
        Ok(())
    }

    /// Fails if another program has changed the file that the output appends to, since it was copied.
    fn check_base(&self) -> io::Result<()> {
        let found = match fs::metadata(self.target.final_path(1)) {
            Ok(found) => Some(FileState::of(&found)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // Without the file, its content is in the output. A restart takes it back after it was published.
        match found.is_none() || found == self.base || self.open.is_none() {
            true => Ok(()),
            false => Err(lost("another program changed it while the step appended to it")),
        }
    }

    fn create_first(&mut self) -> Result<Part, ResourceError> {
        let mut part = self.create(1)?;
        self.remove_parts_after(1)?;
        self.target.start().map_err(|error| self.fail("write", error))?;
        let first = self.target.final_path(1);
        if self.appends() && exists(&first)? {
            let copied = part.copy(&first);
            self.base = Some(copied.map_err(|error| self.fail("append to", error))?);
        }
        Ok(part)
    }

    /// Starts a file again that was empty at the checkpoint. What it appends to is part of its length, so it had nothing.
    fn create_again(&self, number: u32) -> Result<Part, ResourceError> {
        let part = self.create(number)?;
        self.remove_parts_after(number)?;
        Ok(part)
    }

    /// Removes files that were started after the last checkpoint, or by a step that did not complete.
    fn remove_parts_after(&self, number: u32) -> Result<(), ResourceError> {
        for number in number + 1.. {
            let path = self.target.part_path(number);
            if self.max_items.is_none() || !exists(&path)? {
                break;
            }
            self.target.delete_part(number)?;
        }
        Ok(())
    }

    fn create(&self, number: u32) -> Result<Part, ResourceError> {
        let created = self.target.create_directory();
        created.map_err(|error| self.fail("create the directory of", error))?;
        let path = self.target.part_path(number);
        let file = self.lock(&path, true)?;
        let emptied = self.target.abort_upload(number).and_then(|()| file.set_len(0));
        emptied.map_err(|error| self.fail("write", error))?;
        if !self.target.is_object() {
            let permitted = take_permissions(&self.target.final_path(number), &file);
            permitted.map_err(|error| self.fail("write", error))?;
        }
        Ok(Part::new(file, number))
    }

    /// Opens the file of a checkpoint. `known` is its identity if this run has written its content.
    fn reopen(&self, position: &OutputPosition, known: Option<FileId>) -> Result<Part, ResourceError> {
        let fail = |error| self.fail("resume writing", error);
        let file = self.lock(&self.target.part_path(position.file), false)?;
        let checked = match known == Some(file.id()) {
            true => check_length(&file, position),
            false => check_content(&file, position),
        };
        checked.map_err(fail)?;
        file.set_len(position.length).map_err(fail)?;
        self.target
            .upload_committed(position.file, position.length)
            .map_err(fail)?;
        self.remove_parts_after(position.file)?;
        Ok(Part {
            checkpoint: position.length,
            length: position.length,
            items: position.items,
            content: Hasher::new_with_initial_len(position.content, position.length),
            ..Part::new(file, position.file)
        })
    }

    /// Opens and locks a file, so that no other process writes it.
    fn lock(&self, path: &Path, create: bool) -> Result<LockedFile, ResourceError> {
        LockedFile::open(path, create).map_err(|error| {
            let cause = match error {
                LockError::Taken => io::Error::other(
                    "another execution, partition or writer is writing it; wait for its end, or give each of them an `output` of its own",
                ),
                LockError::Failed(error) if error.kind() != io::ErrorKind::NotFound || create => error,
                LockError::Failed(_) if self.target.is_object() => io::Error::other(
                    "the file of the last checkpoint does not exist here; restart the job on the host that it ran on, or launch \
                     it with other parameters",
                ),
                LockError::Failed(_) => io::Error::other(
                    "the file of the last checkpoint does not exist any more; launch the job with other parameters, \
                     or restore the file",
                ),
            };
            ResourceError::new(format!("write `{}`", path.display()), cause)
        })
    }

    fn fail(&self, action: &str, error: io::Error) -> ResourceError {
        ResourceError::new(format!("{action} `{}`", self.describe()), error)
    }
}

/// Gives a new file the permissions of the one that it replaces, but lets its owner write it.
fn take_permissions(replaced: &Path, file: &File) -> io::Result<()> {
    let permissions = match fs::metadata(replaced) {
        Ok(found) => found.permissions(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = permissions.mode() | 0o200;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = (permissions, file);
    Ok(())
}
