//! The errors of readers and writers.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use batch_runtime::{BatchError, BatchException};
use encoding_rs::{Encoding, UTF_8};

/// A record that cannot be read: the file and line, the field with its value if it is known, and the raw text.
///
/// The reader has advanced past the record, so a job may skip the error: `<include class="RecordError"/>`.
#[derive(Debug, BatchException)]
#[batch_exception(
    class = "org.springframework.batch.item.file.FlatFileParseException",
    extends = "org.springframework.batch.item.ParseException"
)]
pub struct RecordError {
    resource: String,
    /// What `line` counts, if not lines.
    unit: Option<&'static str>,
    line: u64,
    column: Option<usize>,
    cell: Option<String>,
    field: Option<Field>,
    raw: Vec<u8>,
    encoding: &'static Encoding,
    cause: Box<dyn Error + Send + Sync>,
}

/// Where an item comes from: the file and line, and the text if the reader keeps it.
pub struct Origin<'a> {
    pub(crate) resource: &'a str,
    pub(crate) line: u64,
    pub(crate) raw: Cow<'a, [u8]>,
    pub(crate) encoding: &'static Encoding,
}

impl<'a> Origin<'a> {
    /// Returns `file:line`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.resource, self.line)
    }

    /// `line` counts from 1.
    pub fn new(resource: &'a str, line: u64, text: impl Into<Cow<'a, str>>) -> Self {
        let raw = match text.into() {
            Cow::Borrowed(text) => text.as_bytes().into(),
            Cow::Owned(text) => text.into_bytes().into(),
        };
        Self {
            resource,
            line,
            raw,
            encoding: UTF_8,
        }
    }
}

/// The records that are dropped with a bad one, because they belong to its group: the details of its error.
#[derive(Debug)]
pub(crate) struct DroppedRecords {
    /// Those before the bad record, and those after it.
    pub(crate) before: Vec<DroppedRecord>,
    pub(crate) after: Vec<DroppedRecord>,
}

/// A record that is dropped with its group.
#[derive(Debug)]
pub(crate) struct DroppedRecord {
    /// The file; without a line, the place.
    pub(crate) resource: String,
    pub(crate) line: Option<u64>,
    pub(crate) raw: Vec<u8>,
    pub(crate) encoding: &'static Encoding,
}

/// The field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The number of the field in its record, from 1.
    pub number: usize,
    /// The name, if the fields have names.
    pub name: Option<String>,
    /// The text of the field.
    pub value: String,
}

impl RecordError {
    pub(crate) fn new(
        resource: impl Into<String>,
        line: u64,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            resource: resource.into(),
            unit: None,
            line,
            column: None,
            cell: None,
            field: None,
            raw: Vec::new(),
            encoding: UTF_8,
            cause: cause.into(),
        }
    }

    /// Returns the error for the record at `origin`.
    #[must_use]
    pub fn at(origin: Origin<'_>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(origin.resource, origin.line, cause).with_raw(origin.raw, origin.encoding)
    }

    /// `number` is the number of a message in a queue, which counts in `unit`.
    #[must_use]
    pub fn of_message(
        resource: String,
        unit: &'static str,
        number: u64,
        cause: Box<dyn Error + Send + Sync>,
        raw: &[u8],
    ) -> Self {
        Self {
            unit: Some(unit),
            raw: raw.to_vec(),
            ..Self::new(resource, number, cause)
        }
    }

    /// Adds the bad field.
    #[must_use]
    pub fn with_field(mut self, field: Option<Field>) -> Self {
        self.field = field;
        self
    }

    /// `column` counts characters from 1.
    pub(crate) fn with_column(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    /// Adds the bad cell of a sheet, such as ``B3 of sheet `Orders` ``.
    #[must_use]
    pub fn with_cell(mut self, cell: Option<String>) -> Self {
        self.cell = cell;
        self
    }

    pub(crate) fn with_raw(mut self, raw: impl Into<Vec<u8>>, encoding: &'static Encoding) -> Self {
        self.raw = raw.into();
        self.encoding = encoding;
        self
    }

    /// Returns the file, the query, or the place of a message.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Returns the line at which the record starts, from 1; of a query, a sheet and a Parquet file, the row; of a
    /// message, its offset in Kafka or its sequence in a stream of NATS.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the bad field, if it is known.
    pub fn field(&self) -> Option<&Field> {
        self.field.as_ref()
    }

    /// Returns the record as it is in the file, without its line end; of a sheet, its cells with tabs between them. Empty if it is
    /// too long to keep, and for a Parquet file.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Returns the text of the record; bytes that are not valid in its encoding are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        self.encoding.decode_without_bom_handling(&self.raw).0
    }

    pub(crate) fn encoding(&self) -> &'static Encoding {
        self.encoding
    }
}

/// Returns the text of a record in UTF-8. Bytes that are not valid in UTF-8 remain as they are.
pub(crate) fn in_utf8(raw: &[u8], encoding: &'static Encoding) -> Vec<u8> {
    match encoding == UTF_8 {
        true => raw.to_vec(),
        false => encoding
            .decode_without_bom_handling(raw)
            .0
            .into_owned()
            .into_bytes(),
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            None => write!(f, "{}:{}", self.resource, self.line)?,
            Some(unit) => write!(f, "{}, {unit} {}", self.resource, self.line)?,
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        f.write_str(": ")?;
        if let Some(cell) = &self.cell {
            write!(f, "cell {cell}: ")?;
        }
        if let Some(field) = &self.field {
            match &field.name {
                Some(name) => write!(f, "field `{name}` (number {}): ", field.number)?,
                None => write!(f, "field {}: ", field.number)?,
            }
            write!(f, "invalid value {:?}: ", shortened(&field.value))?;
        }
        write!(f, "{}", self.cause)
    }
}

impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

/// Returns the beginning of a value: enough to recognise it in a message.
fn shortened(value: &str) -> String {
    const MOST: usize = 60;
    match value.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// An item that cannot be written in the format of its file.
///
/// Nothing of it is in the file, so a job may skip the error: `<include class="EncodeError"/>`.
#[derive(Debug, BatchException)]
#[batch_exception(class = "org.springframework.batch.item.WriteFailedException")]
pub struct EncodeError {
    resource: String,
    item: u64,
    /// What the item is counted in.
    of: &'static str,
    cause: String,
}

impl EncodeError {
    /// `item` is the number of the item in its file, from 1.
    #[must_use]
    pub fn of_file(resource: String, item: u64, cause: String) -> Self {
        let of = "file";
        Self {
            resource,
            item,
            of,
            cause,
        }
    }

    /// Returns the error about the item at `index`, from 0, of the list that is written.
    #[must_use]
    pub fn of_chunk(resource: String, index: usize, cause: String) -> BatchError {
        let error = Self {
            resource,
            item: index as u64 + 1,
            of: "chunk",
            cause,
        };
        BatchError::about_item(index, error)
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource,
            item,
            of,
            cause,
        } = self;
        write!(f, "cannot write item {item} of the {of} to `{resource}`: {cause}")
    }
}

impl Error for EncodeError {}

/// A file or another resource that cannot be read or written.
#[derive(Debug, BatchException)]
#[batch_exception(class = "org.springframework.batch.item.ItemStreamException")]
pub struct ResourceError {
    action: String,
    cause: Box<dyn Error + Send + Sync>,
}

impl ResourceError {
    /// `action` completes "cannot ..".
    pub fn new(action: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            action: action.into(),
            cause: cause.into(),
        }
    }
}

impl ResourceError {
    /// Returns an error with the same message.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.action.clone(), self.cause.to_string())
    }
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.action, self.cause)
    }
}

impl Error for ResourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

/// An error of a reader.
#[derive(Debug)]
pub enum ReadError {
    /// A bad record: the next one can be read.
    Record(Box<RecordError>),
    /// Nothing more can be read.
    Resource(ResourceError),
}

impl From<RecordError> for ReadError {
    fn from(error: RecordError) -> Self {
        Self::Record(Box::new(error))
    }
}

impl From<ResourceError> for ReadError {
    fn from(error: ResourceError) -> Self {
        Self::Resource(error)
    }
}

impl From<ReadError> for batch_runtime::BatchError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Record(error) => (*error).into(),
            ReadError::Resource(error) => error.into(),
        }
    }
}
