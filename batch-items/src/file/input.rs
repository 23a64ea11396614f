//! The input of file readers: its properties, the formats of files, and the position of the next record.

use std::borrow::Cow;
use std::error::Error;

use batch_runtime::BatchArtifact;
use csv::StringRecord;
use encoding_rs::Encoding;
use serde::{Deserialize, Serialize};

use super::bytes::Bytes;
use super::compression::Compression;
pub(super) use super::content::EncodingName;
use super::content::{Coding, decode};
use super::fingerprint::{Fingerprint, IfChanged};
use super::place::Place;
use super::resource::{EmptyFiles, FileOrder, Resource, current_folder};
use super::url;
use crate::added::{Added, AddedValue};
use crate::choices;
use crate::dataset::Datasets;
use crate::error::{Origin, ReadError, RecordError, ResourceError};
use crate::record::{Record, Value};

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
    pub(super) datasets: Datasets,
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

    /// Returns the names of the fields that the reader adds to records.
    pub(crate) fn added_names(&self) -> impl Iterator<Item = String> {
        self.input.added_fields().into_iter().map(|(name, _)| name)
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

    pub(super) fn coding(&self, resource: &Resource) -> Coding {
        Coding {
            compression: resource.compression(self.compression),
            encoding: self.encoding.0,
            mark_decides: self.encoding.1,
            is_binary: false,
        }
    }

    pub(super) fn find(&self) -> Result<Vec<Resource>, ResourceError> {
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
    pub(super) fn describe(&self) -> String {
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

choices! {
    IfMissing { "fail" => Fail, "empty" => Empty }
    FileOrder { "name" => Name, "modified" => Modified }
}
