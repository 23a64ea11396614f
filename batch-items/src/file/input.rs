//! The input of file readers: one file after the other, the position of the next record, and the check that a restart finds
//! the files that its checkpoint was taken in.

use std::borrow::Cow;
use std::error::Error;

use batch_runtime::BatchArtifact;
use batch_runtime::observer::DatasetRole;
use csv::StringRecord;
use encoding_rs::Encoding;
use serde::{Deserialize, Serialize};

use super::bytes::Bytes;
use super::compression::Compression;
pub(super) use super::content::EncodingName;
use super::content::{Coding, decode};
use super::fingerprint::{Fingerprint, IfChanged, change_of_finished};
use super::place::Place;
use super::resource::{EmptyFiles, FileOrder, Resource, current_folder};
use super::url;
use super::used_files::UsedFiles;
use crate::added::{Added, AddedValue};
use crate::choices;
use crate::dataset::Datasets;
use crate::error::{Origin, ReadError, RecordError, ResourceError};
use crate::record::{Record, Value};
use crate::rows::is_same_name;

/// The files that a reader reads, and what its job says about them.
///
/// Every file reader has these properties:
///
/// | property | default | |
/// |---|---|---|
/// | `resource` | required | a path, a URL, or a pattern such as `in/*.csv` or `s3://bucket/in/*.csv`, whose files are read one after the other |
/// | `store.options` | none | for URLs of object stores and HTTP: `name=value`, separated by commas |
/// | `order` | `name` | the order of several files: `name`, or `modified` for the oldest first |
/// | `if.missing` | `fail` | `empty`: no file is an input without records |
/// | `empty.files` | `accept` | `fail`: a file without records is an error |
/// | `if.changed` | `fail` | `resume`: a restart accepts a file that changed after the checkpoint's position; it also accepts changes of earlier files, but does not read them |
/// | `encoding` | `utf-8` | a label of the WHATWG encoding standard, such as `windows-1252`, `shift_jis` or `utf-16`, whose byte-order mark decides between the two UTF-16; another mark that contradicts the encoding is an error |
/// | `compression` | by extension | `none`, `gzip` or `zstd` |
/// | `skip.lines` | `0` | lines at the beginning of each file that are not read |
/// | `max.record.length` | `1048576` | in bytes; a longer record is a [`RecordError`](crate::RecordError) |
/// | `file.field`, `line.field`, `record.field` | none | the name of a field that each record gets: its file, its first line, its number in the file |
/// | `raw.field` | none | the name of a field that each record gets: its text as it is in the file: a row, a line, or an element; for Excel, the values separated by tabs. Not for Parquet and Arrow |
///
/// A line ends with LF, CRLF or CR. A file is opened once and read once. One that is cut meanwhile is an error; one that is removed or replaced
/// is read to its end. Pipes and devices are rejected, because a restart cannot read them again.
///
/// A restart seeks to the position of its checkpoint. Compressed files and UTF-16 are decoded again up to there. The
/// size, time and beginning of this file, and of all files that were read before it, must be unchanged. No file may have disappeared; new
/// files are read if they come after the position.
///
/// With the feature `object-store`, `resource` may be an `s3://`, `gs://` or `az://` URL, with `*` and `[..]` in the key, and an
/// `http://` or `https://` URL without a pattern. They are read by requests of ranges, at a restart from the position of the checkpoint;
/// an HTTP server without ranges sends all again. Files of Parquet and Excel are downloaded to a temporary file. An object
/// that has changed since the checkpoint is an error, unless `if.changed` = `resume`; one that changes while it is read is an error. A
/// restart sends one request for each object that was read before.
///
/// Credentials, endpoint and region are in the environment, by the names that [object_store](https://docs.rs/object_store) gives them
/// (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME`), or in `store.options`:
/// `endpoint=http://localhost:9000, allow_http=true`. `retries` is the number of times that a request is repeated, by default 6, within 60 seconds. Users
/// and queries of URLs are not in messages, logs and checkpoints.
#[derive(BatchArtifact)]
pub struct FileInput {
    #[batch_property(name = "resource")]
    pub(crate) resource: std::path::PathBuf,
    #[batch_property(name = "store.options")]
    pub(crate) store_options: Vec<String>,
    #[batch_property(name = "order", value = "name")]
    pub(crate) order: FileOrder,
    #[batch_property(name = "if.missing", value = "fail")]
    pub(crate) if_missing: IfMissing,
    #[batch_property(name = "empty.files", value = "accept")]
    pub(crate) empty_files: EmptyFiles,
    #[batch_property(name = "if.changed", value = "fail")]
    pub(crate) if_changed: IfChanged,
    #[batch_property(name = "encoding", value = "utf-8")]
    pub(crate) encoding: EncodingName,
    #[batch_property(name = "compression")]
    pub(crate) compression: Option<Compression>,
    #[batch_property(name = "skip.lines", value = "0")]
    pub(crate) skip_lines: u64,
    #[batch_property(name = "max.record.length", value = "1048576")]
    pub(crate) max_record_length: usize,
    #[batch_property(name = "file.field")]
    file_field: String,
    #[batch_property(name = "line.field")]
    line_field: String,
    #[batch_property(name = "record.field")]
    record_field: String,
    #[batch_property(name = "raw.field")]
    raw_field: String,
    #[batch_artifact]
    datasets: Datasets,
}

/// What a reader does if there is no file: the property `if.missing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfMissing {
    /// `fail`: the step fails. The default.
    #[default]
    Fail,
    /// `empty`: there are no records.
    Empty,
}

/// The checkpoint of a file reader: the position of the next record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPosition {
    /// The number of files that are read completely.
    pub files: usize,
    /// The CRC-32 of their names.
    pub names: u32,
    /// The CRC-32 of their fingerprints; `None` in a checkpoint of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<u32>,
    /// The number of files that were found; `None` in a checkpoint of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<usize>,
    /// The position in the next file; `None` at its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FilePosition>,
    /// The number of items of all files, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePosition {
    /// The file.
    pub resource: String,
    /// The position of the next record in bytes; of a compressed file, in its content; of an Arrow file, the number of its batch.
    pub byte: u64,
    /// The line of the next record, from 1.
    pub line: u64,
    /// The number of records before it.
    pub record: u64,
    /// In XML, the number of elements around the next record; in an Arrow file, the number of rows before it in its batch.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The file when it was opened.
    pub fingerprint: Fingerprint,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A format of files, for a [`FileItemReader`](super::FileItemReader): an artifact with the properties of the format.
///
/// The reader finds the files, decompresses them, resumes at checkpoints, and checks that the files are still the same. The format splits a
/// file into [`Records`] and makes [`Items`] of them. An example is in the guide, on the
/// page "A file format of your own".
pub trait Format: Send {
    /// The records of a file.
    type Records: Records;

    /// Starts reading a file, at its beginning or at the place of a checkpoint.
    ///
    /// # Errors
    /// A [`ResourceError`] if the file cannot be opened or is not of this format, or if the properties make every record impossible.
    fn start(&self, file: OpenFile<'_>) -> Result<Self::Records, ReadError>;

    /// Returns the number of lines of a file that are not records, such as a header; `None` if records are not lines, which is the
    /// default.
    fn other_lines(&self) -> Option<u64> {
        None
    }

    /// Returns the number of records of a file whose records are not lines, if that is known without reading them. Default: `None`.
    fn count(&self, _source: &Source) -> Option<u64> {
        None
    }

    /// Returns whether each record starts a line, which a restart checks. Default: whether records are lines.
    fn starts_lines(&self) -> bool {
        self.other_lines().is_some()
    }
}

/// The records of a file, one after the other.
pub trait Records: Send {
    /// Advances to the next record; `false` at the end of the file, if nothing is left over.
    ///
    /// # Errors
    /// A [`RecordError`](crate::RecordError) for a record that cannot be read: the next call continues with the record after it. A
    /// [`ResourceError`] if nothing more can be read.
    fn advance(&mut self) -> Result<bool, ReadError>;

    /// Returns the place after the current record, where a restart continues.
    fn place(&self) -> Place;

    /// Returns where the current record comes from, with its bytes, for messages and rejects.
    fn origin(&self) -> Origin<'_>;
}

/// Records that are items.
pub trait Items<T>: Records {
    /// Checks the file before its first record.
    fn check(&self) -> Result<(), ReadError> {
        Ok(())
    }

    /// Returns the names in the header if only a comparison with other files can show that it is a header.
    fn header(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the cause of an error of the current record, which may be a mistake of the whole file.
    fn explain(&self, error: ReadError) -> ReadError {
        error
    }

    /// Returns the current record as an item.
    ///
    /// # Errors
    /// A [`RecordError`](crate::RecordError) if the record is not an item.
    fn item(&mut self) -> Result<T, ReadError>;
}

/// A file that is about to be read.
pub struct OpenFile<'a> {
    pub(crate) input: &'a FileInput,
    pub(crate) resource: &'a Resource,
    /// The place of the checkpoint; `None` for the beginning.
    pub(crate) resume_at: Option<Place>,
}

impl OpenFile<'_> {
    /// Opens the content, decompressed, at the place of the checkpoint or at the beginning. In a text, that is after its byte-order mark and
    /// the lines of `skip.lines`. Also returns the number of records before it.
    ///
    /// # Errors
    /// If the file cannot be read, ends before the place, or has a byte-order mark that contradicts `encoding`.
    pub fn bytes(&self, source: &Source) -> Result<(Bytes, u64), ResourceError> {
        match self.resume_at {
            Some(place) => Ok((source.open_at(&place)?, place.record)),
            None => Ok((source.open_after(self.input.skip_lines)?, 0)),
        }
    }

    /// Returns the place of the checkpoint; `None` for the beginning of the file.
    pub fn resume_at(&self) -> Option<Place> {
        self.resume_at
    }

    /// Returns the file as a text, whose bytes [`Source::text`] decodes.
    pub fn source(&self) -> Source {
        Source {
            name: self.resource.to_string(),
            resource: self.resource.clone(),
            coding: self.input.coding(self.resource),
            max_record_length: self.input.max_record_length,
            added: self.input.added_fields(),
        }
    }

    /// Returns the file as bytes that are no text.
    ///
    /// # Errors
    /// If `encoding` or `skip.lines` are set, which would have no effect.
    pub fn binary_source(&self) -> Result<Source, ResourceError> {
        let mut source = self.source();
        let input = self.input;
        let ignored = [
            ("encoding", input.encoding != EncodingName::default()),
            ("skip.lines", input.skip_lines > 0),
        ];
        if let Some((property, _)) = ignored.iter().find(|(_, is_set)| *is_set) {
            let cause = format!("a file of this format is no text; remove the property `{property}`");
            return Err(source.fail(cause));
        }
        source.coding.is_binary = true;
        Ok(source)
    }
}

/// A file, which can be opened again at any position.
pub struct Source {
    name: String,
    resource: Resource,
    coding: Coding,
    max_record_length: usize,
    added: Vec<(String, AddedField)>,
}

impl Source {
    /// Returns the path, or the URL without secrets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns bytes of the content as a text.
    ///
    /// # Errors
    /// If they are not valid in the encoding of the file.
    pub fn text(&self, bytes: &[u8]) -> Result<String, String> {
        let mut text = String::new();
        decode(self.encoding(), bytes, &mut text).map(|()| text)
    }

    /// Returns the encoding of the content: UTF-8 if the encoding of the file is converted before.
    pub(crate) fn encoding(&self) -> &'static Encoding {
        self.coding.of_content()
    }

    /// Returns the encoding that the property gives.
    pub(crate) fn given_encoding(&self) -> &'static Encoding {
        self.coding.encoding
    }

    /// Returns the maximum length of a record, in bytes.
    pub fn max_record_length(&self) -> usize {
        self.max_record_length
    }

    /// Opens the file as it is stored, for a format that reads at any position. An object is downloaded to a temporary file.
    ///
    /// # Errors
    /// If the file cannot be opened, or is compressed as a whole.
    pub fn file(&self) -> Result<std::fs::File, ResourceError> {
        if self.coding.compression != Compression::None {
            return Err(
                self.fail("a file of this format cannot be compressed as a whole; decompress it first")
            );
        }
        self.resource.local()
    }

    /// Opens the content at a place.
    pub(crate) fn open_at(&self, place: &Place) -> Result<Bytes, ResourceError> {
        let content = self.coding.open(&self.resource, place.byte)?;
        Ok(Bytes::new(content, place.line))
    }

    /// Opens the content at its beginning, after so many lines.
    pub(crate) fn open_after(&self, lines: u64) -> Result<Bytes, ResourceError> {
        let mut bytes = Bytes::new(self.coding.open(&self.resource, 0)?, 1);
        bytes.skip_lines(lines).map_err(|error| self.fail(error))?;
        Ok(bytes)
    }

    /// Returns the origin of a record. `line` is the number of its first line or, if records are no lines, its own number, both from 1; `raw`
    /// has its bytes. Those that are no text are shown as `\xDEAD`.
    pub fn origin<'a>(&'a self, line: u64, raw: &'a [u8]) -> Origin<'a> {
        Origin {
            resource: &self.name,
            line,
            raw: self.shown(raw),
            encoding: self.encoding(),
        }
    }

    /// Returns the error for a record, which `line` and `raw` describe as in [`origin`](Self::origin).
    pub fn bad_record(
        &self,
        line: u64,
        raw: &[u8],
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> RecordError {
        RecordError::at(self.origin(line, raw), cause)
    }

    /// Returns the bytes of a record as a text in [`encoding`](Self::encoding).
    fn shown<'a>(&self, raw: &'a [u8]) -> Cow<'a, [u8]> {
        match self.coding.is_binary && !raw.is_empty() {
            true => Value::Bytes(raw.to_vec()).to_string().into_bytes().into(),
            false => raw.into(),
        }
    }

    /// Returns the error for a file that cannot be read.
    pub fn fail(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> ResourceError {
        ResourceError::new(format!("read `{}`", self.name), cause)
    }

    /// Sets the fields of a record that the properties of [`FileInput`] add, such as `file.field`. `line` and `raw` are as in
    /// [`origin`](Self::origin), `number` counts the records of the file, from 1.
    ///
    /// # Errors
    /// If the record has a field of the same name, whose value would be lost.
    pub fn add_fields(
        &self,
        record: &mut Record,
        line: u64,
        number: u64,
        raw: &[u8],
    ) -> Result<(), ResourceError> {
        let number_of = |number| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        for (name, field) in &self.added {
            if record.get(name).is_some() {
                let cause =
                    format!("it has a column `{name}` already; choose another name for the added field");
                return Err(self.fail(cause));
            }
            let value = match field {
                AddedField::File => self.name().into(),
                AddedField::Line => number_of(line),
                AddedField::Record => number_of(number),
                AddedField::Raw => {
                    let text = self
                        .encoding()
                        .decode_without_bom_handling(&self.shown(raw))
                        .0
                        .into_owned();
                    Value::Text(text)
                }
            };
            record.set(name, value);
        }
        Ok(())
    }

    /// Returns whether records get further fields.
    pub(crate) fn adds_fields(&self) -> bool {
        !self.added.is_empty()
    }

    /// Returns whether the property `raw.field` adds the text of each record. A format without texts rejects it.
    pub fn adds_raw(&self) -> bool {
        self.added.iter().any(|(_, field)| *field == AddedField::Raw)
    }

    /// Returns the names of the fields that the properties of [`FileInput`] add.
    pub fn added_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.added.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the added fields of a record with the text `raw`.
    pub(crate) fn added<'a>(&'a self, line: u64, record: u64, raw: &'a str) -> Vec<Added<'a>> {
        let added = self.added.iter().map(|(name, field)| Added {
            name,
            value: match field {
                AddedField::File => AddedValue::Text(self.name()),
                AddedField::Line => AddedValue::Number(line),
                AddedField::Record => AddedValue::Number(record),
                AddedField::Raw => AddedValue::Text(raw),
            },
        });
        added.collect()
    }

    /// Appends the added fields of a record to its row.
    #[doc(hidden)]
    pub fn add_to_row(&self, row: &mut StringRecord, line: u64, record: u64, raw: &str) {
        for (_, field) in &self.added {
            match field {
                AddedField::File => row.push_field(self.name()),
                AddedField::Line => row.push_field(&line.to_string()),
                AddedField::Record => row.push_field(&record.to_string()),
                AddedField::Raw => row.push_field(raw),
            }
        }
    }
}

impl FileInput {
    /// Returns the fields that each record gets in addition.
    fn added_fields(&self) -> Vec<(String, AddedField)> {
        let all = [
            (&self.file_field, AddedField::File),
            (&self.line_field, AddedField::Line),
            (&self.record_field, AddedField::Record),
            (&self.raw_field, AddedField::Raw),
        ];
        let named = all.into_iter().filter(|(name, _)| !name.is_empty());
        named.map(|(name, field)| (name.clone(), field)).collect()
    }

    fn coding(&self, resource: &Resource) -> Coding {
        Coding {
            compression: resource.compression(self.compression),
            encoding: self.encoding.0,
            mark_decides: self.encoding.1,
            is_binary: false,
        }
    }

    fn find(&self) -> Result<Vec<Resource>, ResourceError> {
        let pattern = self.resource.to_string_lossy();
        let found = Resource::find(&pattern, self.order, &self.store_options);
        let mut found =
            found.map_err(|error| ResourceError::new(format!("read `{}`", self.describe()), error))?;
        match self.if_missing {
            IfMissing::Empty => {
                let mut existing = Vec::new();
                for resource in found {
                    if resource.exists()? {
                        existing.push(resource);
                    }
                }
                found = existing;
            }
            IfMissing::Fail if found.is_empty() => {
                let name = self.describe();
                return Err(ResourceError::new(
                    format!("read `{name}`{}", current_folder(&name)),
                    "no file matches; set `if.missing` to `empty` if that is not an error",
                ));
            }
            IfMissing::Fail => {}
        }
        Ok(found)
    }

    /// Returns the property `resource` without secrets.
    fn describe(&self) -> String {
        url::redact(&self.resource.to_string_lossy())
    }
}

/// A field that the reader adds to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddedField {
    File,
    Line,
    Record,
    Raw,
}

/// Reads files in a format, one after the other.
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
            let cause = format!("the first {files} files are not those that were read before the checkpoint");
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
            fail("it does not exist any more, or the files before it are not those that were read before the checkpoint".to_owned())
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
                    Ok(true) => return Ok(self.current.as_mut()),
                    Ok(false) if records.place().record == 0 => {
                        self.without_records.get_or_insert(self.done);
                        if input.empty_files == EmptyFiles::Fail {
                            let error = no_records(&self.resources[self.done]);
                            self.failed = Some(error.again());
                            return Err(error.into());
                        }
                    }
                    Ok(false) => {}
                    Err(error) => {
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

    /// Returns the number of lines of all files, without so many `other` ones of each; `None` if counting would take long.
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

fn no_records(file: &Resource) -> ResourceError {
    let cause = "it has no records; set `empty.files` to `accept` if that is not an error";
    ResourceError::new(format!("read `{file}`"), cause)
}

fn resume_error(name: &str, cause: String) -> ResourceError {
    ResourceError::new(format!("resume reading `{name}`"), cause)
}

choices! {
    IfMissing { "fail" => Fail, "empty" => Empty }
    FileOrder { "name" => Name, "modified" => Modified }
}
