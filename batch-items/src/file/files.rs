//! Reads one file after the other, and checks that a restart finds the files that its checkpoint was taken in.

use batch_runtime::observer::DatasetRole;

use super::fingerprint::{Fingerprint, IfChanged, change_of_finished};
use super::input::{FileInput, FilePosition, Format, Items, OpenFile, ReadPosition, Records};
use super::place::Place;
use super::resource::{EmptyFiles, Resource};
use super::used_files::UsedFiles;
use crate::error::{Origin, ReadError, ResourceError};
use crate::rows::is_same_name;

/// The files of a reader, read one after the other.
pub struct Files<R> {
    resources: Vec<Resource>,
    /// The number of files that are read completely, and the CRC-32 of their names and fingerprints.
    done: usize,
    names: u32,
    contents: u32,
    current: Option<R>,
    /// Of the current file, when it was opened.
    fingerprint: Fingerprint,
    resume_at: Option<Place>,
    /// The names in the header of the first file that has one, and the name of this file.
    header: Option<(Vec<String>, String)>,
    /// The error of the current file: it must not be taken for its end, if a job skips it.
    failed: Option<ResourceError>,
    /// Whether the current file has records, also ones that cannot be read.
    has_records: bool,
    /// The first file without records since the reader was opened.
    without_records: Option<usize>,
    used: UsedFiles,
}

impl<R> Default for Files<R> {
    fn default() -> Self {
        Self {
            resources: Vec::new(),
            done: 0,
            names: 0,
            contents: 0,
            current: None,
            fingerprint: Fingerprint::default(),
            resume_at: None,
            header: None,
            failed: None,
            has_records: false,
            without_records: None,
            used: UsedFiles::default(),
        }
    }
}

impl<R: Records> Files<R> {
    /// Positions at the checkpoint. Opens the first file, so that a missing one fails at the start of the step.
    pub(crate) fn open<T>(
        &mut self,
        input: &FileInput,
        format: &impl Format<Records = R>,
        checkpoint: Option<ReadPosition>,
    ) -> Result<(), ReadError>
    where
        R: Items<T>,
    {
        *self = Self {
            resources: input.find()?,
            ..Self::default()
        };
        let pattern = input.resource.to_string_lossy();
        let files = self.resources.iter().map(Resource::dataset);
        self.used = UsedFiles::of(&input.datasets, files.clone());
        input.datasets.report_files(DatasetRole::Input, &pattern, files);
        if let Some(position) = checkpoint {
            self.seek(input, format, position)?;
        }
        self.start_next(input, format)
    }

    fn seek(
        &mut self,
        input: &FileInput,
        format: &impl Format<Records = R>,
        position: ReadPosition,
    ) -> Result<(), ReadError> {
        self.pass_finished(input, &position)?;
        if let Some(expected) = &position.file {
            self.resume_at = Some(self.place_in_next(input, format, expected)?);
        }
        let now = self.resources.len();
        if let Some(before) = position.found.filter(|before| now < *before) {
            let cause = format!(
                "there were {before} files before, and there are {now} now: one that was not read yet has disappeared; \
                 restore it and restart the job, or run `abandon` for this execution and `start` the job again"
            );
            return Err(resume_error(&input.describe(), cause).into());
        }
        Ok(())
    }

    /// Passes over the files that were read before the checkpoint. Fails if they have changed.
    fn pass_finished(&mut self, input: &FileInput, position: &ReadPosition) -> Result<(), ResourceError> {
        let files = position.files;
        let names = |finished: &[Resource]| finished.iter().fold(0, append_name);
        if self.resources.get(..files).map(names) != Some(position.names) {
            let cause = format!(
                "the first {files} files are not the files that were read before the checkpoint; {RESTORE}"
            );
            return Err(resume_error(&input.describe(), cause));
        }
        let mut modified = Vec::with_capacity(files);
        for _ in 0..files {
            self.fingerprint = self.resources[self.done].quick_fingerprint()?;
            modified.push(self.fingerprint.modified);
            self.pass();
        }
        let is_changed = position
            .contents
            .is_some_and(|contents| contents != self.contents);
        if !is_changed || input.if_changed == IfChanged::Resume {
            return Ok(());
        }
        let finished: Vec<_> = modified.into_iter().zip(&self.resources).collect();
        let of = match finished[..] {
            [(_, only)] => only.to_string(),
            _ => input.describe(),
        };
        Err(resume_error(&of, change_of_finished(&finished)))
    }

    /// Returns the place of the checkpoint in the next file.
    fn place_in_next(
        &self,
        input: &FileInput,
        format: &impl Format<Records = R>,
        expected: &FilePosition,
    ) -> Result<Place, ResourceError> {
        let fail = |cause: String| resume_error(&expected.resource, cause);
        let next = self.resources.get(self.done);
        let resource = next.filter(|it| it.to_string() == expected.resource);
        let resource = resource.ok_or_else(|| {
            fail(format!(
                "it no longer exists, or the files before it have changed; {RESTORE}"
            ))
        })?;
        let found = resource.fingerprint()?;
        let byte = input.coding(resource).is_seekable().then_some(expected.byte);
        if let Some(change) = found.change_since(&expected.fingerprint, input.if_changed, byte) {
            return Err(fail(change));
        }
        if let Some(byte) = byte
            && format.starts_lines()
            && expected.record > 0
            // The last line may have no end.
            && byte < found.size
            && !resource.has_line_at(byte)?
        {
            let cause = format!("byte {byte}, where reading has to resume, is not the beginning of a line");
            return Err(fail(cause));
        }
        Ok(Place {
            byte: expected.byte,
            line: expected.line,
            record: expected.record,
            depth: expected.depth,
        })
    }

    /// Opens the next file; leaves `current` empty after the last one.
    fn start_next<T>(&mut self, input: &FileInput, format: &impl Format<Records = R>) -> Result<(), ReadError>
    where
        R: Items<T>,
    {
        let Some(resource) = self.resources.get(self.done) else {
            return Ok(());
        };
        self.fingerprint = resource.fingerprint()?;
        if self.fingerprint.size == 0 && input.empty_files == EmptyFiles::Fail {
            return Err(no_records(resource).into());
        }
        let resume_at = self.resume_at.take();
        self.has_records = resume_at.is_some_and(|place| place.record > 0);
        let records = format.start(OpenFile {
            input,
            resource,
            resume_at,
        })?;
        records.check()?;
        self.check_header(input, format, records.header())?;
        self.current = Some(records);
        Ok(())
    }

    /// Fails if the header of the next file shares no column with the header of the first file: it may be a record.
    fn check_header<T>(
        &mut self,
        input: &FileInput,
        format: &impl Format<Records = R>,
        header: Vec<String>,
    ) -> Result<(), ReadError>
    where
        R: Items<T>,
    {
        if header.is_empty() {
            return Ok(());
        }
        // After a restart, the header of the first file is read again.
        let mut before = self.resources[..self.done].iter();
        while self.header.is_none()
            && let Some(resource) = before.next()
        {
            let file = OpenFile {
                input,
                resource,
                resume_at: None,
            };
            let header = format.start(file)?.header();
            resource.release();
            self.header = (!header.is_empty()).then(|| (header, resource.to_string()));
        }
        let name = self.resources[self.done].to_string();
        let (first, first_name) = self.header.get_or_insert_with(|| (header.clone(), name.clone()));
        if header
            .iter()
            .any(|name| first.iter().any(|other| is_same_name(name, other)))
        {
            return Ok(());
        }
        let (header, first) = (header.join("`, `"), first.join("`, `"));
        let cause = format!(
            "none of its columns `{header}` is one of `{first_name}`, which has `{first}`; if its first row is a record, add a header; \
             to accept other columns, set `strict` to `false`"
        );
        Err(ResourceError::new(format!("read `{name}`"), cause).into())
    }

    /// Advances to the next record, in the next file if need be; `None` after the last one.
    pub(crate) fn advance<T>(
        &mut self,
        input: &FileInput,
        format: &impl Format<Records = R>,
    ) -> Result<Option<&mut R>, ReadError>
    where
        R: Items<T>,
    {
        loop {
            if let Some(error) = &self.failed {
                return Err(error.again().into());
            }
            if let Some(records) = &mut self.current {
                match records.advance() {
                    Ok(true) => {
                        self.has_records = true;
                        return Ok(self.current.as_mut());
                    }
                    Ok(false) if !self.has_records => {
                        self.without_records.get_or_insert(self.done);
                        if input.empty_files == EmptyFiles::Fail {
                            let error = no_records(&self.resources[self.done]);
                            self.failed = Some(error.again());
                            return Err(error.into());
                        }
                    }
                    Ok(false) => {}
                    Err(error) => {
                        self.has_records = true;
                        let error = records.explain(error);
                        if let ReadError::Resource(error) = &error {
                            self.failed = Some(error.again());
                        }
                        return Err(error);
                    }
                }
                self.current = None;
                self.pass();
            }
            // A file that could not be opened is opened again: a skip of its error must not skip the file.
            self.start_next(input, format)?;
            if self.current.is_none() {
                return Ok(None);
            }
        }
    }

    /// Returns the position of the next record.
    pub(crate) fn position(&self) -> ReadPosition {
        let file = self.current.as_ref().map(|records| {
            let Place {
                byte,
                line,
                record,
                depth,
            } = records.place();
            FilePosition {
                resource: self.resources[self.done].to_string(),
                byte,
                line,
                record,
                depth,
                fingerprint: self.fingerprint.clone(),
            }
        });
        ReadPosition {
            files: self.done,
            names: self.names,
            contents: Some(self.contents),
            found: Some(self.resources.len()),
            file,
            items: None,
        }
    }

    /// Replaces a position of this input with the position of the next record, if it is in the same file; otherwise returns `false`.
    pub(crate) fn update_position(&self, position: &mut ReadPosition) -> bool {
        let is_same_file = position.files == self.done;
        let (true, Some(records), Some(file)) = (is_same_file, &self.current, &mut position.file) else {
            return false;
        };
        Place {
            byte: file.byte,
            line: file.line,
            record: file.record,
            depth: file.depth,
        } = records.place();
        true
    }

    /// Counts the next file as read.
    fn pass(&mut self) {
        let resource = &self.resources[self.done];
        self.names = append_name(self.names, resource);
        self.contents = self.fingerprint.append_to(self.contents);
        resource.release();
        self.done += 1;
    }

    /// Returns the number of records of all files, if the format knows it without reading them.
    pub(crate) fn count_records(&self, input: &FileInput, format: &impl Format<Records = R>) -> Option<u64> {
        if self.resources.iter().any(Resource::is_remote) {
            return None;
        }
        let files = self.resources.iter().map(|resource| {
            let file = OpenFile {
                input,
                resource,
                resume_at: None,
            };
            format.count(&file.source())
        });
        files.sum()
    }

    /// Returns the number of lines of all files, minus `other` lines for each file; `None` if counting would take long.
    pub(crate) fn count_lines(&self, input: &FileInput, other: u64) -> Option<u64> {
        /// Counted in about a tenth of a second.
        const MOST: u64 = 256 << 20;
        let mut sizes = 0;
        for resource in &self.resources {
            if resource.is_remote() {
                return None;
            }
            sizes += resource.fingerprint().ok()?.size;
            if !input.coding(resource).is_seekable() || sizes > MOST {
                return None;
            }
        }
        let lines = self.resources.iter().map(Resource::count_lines);
        lines.map(|lines| Some(lines?.saturating_sub(other))).sum()
    }

    /// Returns the first file without records since the reader was opened.
    pub(crate) fn without_records(&self) -> Option<String> {
        Some(self.resources[self.without_records?].to_string())
    }

    /// Returns the origin of the current record.
    pub(crate) fn origin(&self) -> Option<Origin<'_>> {
        self.current.as_ref().map(Records::origin)
    }

    pub(crate) fn close(&mut self) {
        self.current = None;
    }
}

/// Returns `crc`, the CRC-32 of the names of the earlier files, extended by the name of this one.
fn append_name(crc: u32, file: &Resource) -> u32 {
    let mut names = crc32fast::Hasher::new_with_initial(crc);
    names.update(file.to_string().as_bytes());
    names.update(b"\0");
    names.finalize()
}

const RESTORE: &str =
    "restore them and restart the job, or run `abandon` for this execution and `start` the job again";

fn no_records(file: &Resource) -> ResourceError {
    let cause = "it has no records; set `empty.files` to `accept` if that is not an error";
    ResourceError::new(format!("read `{file}`"), cause)
}

fn resume_error(name: &str, cause: String) -> ResourceError {
    ResourceError::new(format!("resume reading `{name}`"), cause)
}
