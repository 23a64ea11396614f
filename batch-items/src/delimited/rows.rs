//! The rows of a delimited file.

use std::io::{self, BufRead, Read};

use batch_runtime::BatchArtifact;
use csv::{ByteRecord, ErrorKind, ReaderBuilder, StringRecord};
use encoding_rs::{Encoding, UTF_8};
use serde::de::DeserializeOwned;

use super::form::RowForm;
use super::format::{DelimitedFormat, QuoteMode, RowFormat};
use super::quotes::Quotes;
use crate::error::{Field, ReadError, RecordError, ResourceError};
use crate::file::{
    Content, Extra, Format, Items, LineEnd, Lines, NextLine, OpenFile, Place, Records, Source, decode,
};
use crate::nearest::did_you_mean;
use crate::rows::{RowError, fields_of, from_row};

/// The format of delimited files.
#[derive(BatchArtifact)]
pub struct Delimited {
    #[batch_artifact]
    format: DelimitedFormat,
    #[batch_artifact]
    rows: RowFormat,
}

impl Delimited {
    fn has_header(&self) -> bool {
        self.rows.header && self.rows.columns.is_empty()
    }

    /// Returns the names of the fields, and where the first row begins.
    fn names(&self, source: &Source, skip_lines: u64) -> Result<(Option<StringRecord>, Place), ReadError> {
        let mut lines = Lines::new(source.content(0)?, 1, source.max_record_length());
        lines.skip(skip_lines).map_err(|error| source.fail(error))?;
        let mut first = Place {
            byte: lines.byte,
            line: lines.line,
            ..Place::default()
        };
        if !self.has_header() {
            let columns = &self.rows.columns;
            let names = (!columns.is_empty()).then(|| StringRecord::from(columns.clone()));
            return Ok((names, first));
        }
        let builder = self.format.reader(&self.rows);
        let mut rows = builder.from_reader(Limited::new(lines.into_content(), source));
        let mut header = ByteRecord::new();
        rows.read_byte_record(&mut header)
            .map_err(|error| source.fail(format!("cannot read the header: {error}")))?;
        let position = rows.position();
        first.byte += position.byte();
        first.line += position.line() - 1;
        let names = decoded(source.encoding(), &header)
            .map_err(|(_, cause)| source.fail(format!("cannot read the header: {cause}")))?;
        Ok((Some(names), first))
    }
}

impl Format for Delimited {
    type Records = Rows;

    fn start(&self, file: OpenFile<'_>) -> Result<Rows, ReadError> {
        let (source, extras) = (file.source(), file.input.extra_fields());
        let (mut names, first) = self.names(&source, file.input.skip_lines)?;
        let (base, crlf) = after_line_end(&source, file.resume_at.unwrap_or(first))?;
        if let Some(names) = &mut names {
            if let Some(name) = duplicate(names) {
                return Err(source.fail(format!("its header has two columns `{name}`")).into());
            }
            for (name, _) in &extras {
                if names.iter().any(|column| column == name) {
                    let cause =
                        format!("it has a column `{name}` already; choose another name for the added field");
                    return Err(source.fail(cause).into());
                }
            }
        }
        let width = names.as_ref().map(StringRecord::len);
        let builder = self.format.reader(&self.rows);
        if let Some(names) = &mut names {
            extras.iter().for_each(|(name, _)| names.push_field(name));
        }
        Ok(Rows {
            rows: builder.from_reader(Limited::new(source.content(base.byte)?, &source)),
            builder,
            quotes: self.format.quotes(&self.rows),
            form: RowForm::new(&self.format, QuoteMode::Necessary, LineEnd::default())
                .quoting(self.rows.comment),
            names,
            width,
            strict: self.rows.strict,
            extras: extras.into_iter().map(|(_, extra)| extra).collect(),
            base,
            record: base.record,
            start: base,
            row: StringRecord::new(),
            bytes: ByteRecord::new(),
            crlf,
            open_end: source.open_end(),
            source,
        })
    }

    fn other_lines(&self) -> Option<u64> {
        Some(u64::from(self.has_header()))
    }
}

/// Reads rows one by one.
pub struct Rows {
    rows: csv::Reader<Limited>,
    builder: ReaderBuilder,
    quotes: Quotes,
    /// How the row is written as text.
    form: RowForm,
    names: Option<StringRecord>,
    /// The number of fields of a row; unknown before the first one, if they have no names.
    width: Option<usize>,
    strict: bool,
    extras: Vec<Extra>,
    /// The place at which `rows` begins.
    base: Place,
    record: u64,
    /// The place of the current row.
    start: Place,
    row: StringRecord,
    bytes: ByteRecord,
    /// True if the lines end with CRLF.
    crlf: bool,
    /// The end of a file whose last line has none.
    open_end: Option<u64>,
    source: Source,
}

impl Rows {
    /// Returns the error for the current row, which is not an item.
    fn bad_item(&self, error: RowError) -> ReadError {
        if let (Some(missing), true) = (error.missing, self.strict && self.names.is_some()) {
            return self.no_column(missing);
        }
        let field = error.field(self.names.as_ref(), &self.row);
        self.bad_row(error, field)
    }

    /// Returns the names in the header, without those of added fields.
    fn header(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter().flat_map(StringRecord::iter);
        names.take(self.width.unwrap_or(usize::MAX))
    }

    /// Returns the error for a file whose header lacks a column.
    fn no_column(&self, missing: &str) -> ReadError {
        self.other_header(&format!("it has no column `{missing}`"), missing)
    }

    /// Returns the error for a file with another header.
    fn other_header(&self, problem: &str, missing: &str) -> ReadError {
        let columns: Vec<_> = self.header().map(|name| format!("`{name}`")).collect();
        let single = self.header().next().filter(|_| columns.len() == 1);
        let other = single.and_then(|name| name.chars().find(|c| [',', ';', '\t', '|'].contains(c)));
        let hint = match other {
            Some('\t') => "; if a tab separates the columns, set `delimiter` to `tab`".to_owned(),
            Some(other) => format!("; if `{other}` separates the columns, set `delimiter` to it"),
            None => did_you_mean(missing, self.header()),
        };
        let cause = format!("{problem}, but {}{hint}", columns.join(", "));
        self.source.fail(cause).into()
    }

    fn bad_row(
        &self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        field: Option<Field>,
    ) -> ReadError {
        let raw = self.source.raw(self.start.byte..self.place().byte);
        let (raw, line) = match raw {
            Some((raw, lines)) => (raw, self.start.line + lines),
            None => (Vec::new(), self.start.line),
        };
        RecordError::new(self.source.name(), line, cause)
            .with_field(field)
            .with_raw(raw, self.source.encoding())
            .into()
    }

    fn read(&mut self) -> Result<bool, ReadError> {
        if self.source.encoding() != UTF_8 {
            let more = self.rows.read_byte_record(&mut self.bytes);
            if !more.map_err(|error| self.failed(error))? {
                return Ok(false);
            }
            self.row = decoded(self.source.encoding(), &self.bytes)
                .map_err(|(index, cause)| self.bad_row(cause, self.bytes_field(index)))?;
            return Ok(true);
        }
        let more = self.rows.read_record(&mut self.row);
        more.map_err(|error| self.failed(error))
    }

    /// Returns a field that is not valid text.
    fn bytes_field(&self, index: usize) -> Option<Field> {
        Some(Field {
            number: index + 1,
            name: self
                .names
                .as_ref()
                .and_then(|names| names.get(index))
                .map(str::to_owned),
            value: String::from_utf8_lossy(self.bytes.get(index).unwrap_or_default()).into_owned(),
        })
    }

    fn failed(&mut self, error: csv::Error) -> ReadError {
        if self.rows.get_ref().exceeded {
            return match self.skip_row() {
                Ok((line, raw)) => {
                    let error = self.too_long(line);
                    error.with_raw(raw, self.source.encoding()).into()
                }
                Err(error) => error.into(),
            };
        }
        match error.into_kind() {
            ErrorKind::Io(error) => self.source.fail(error).into(),
            ErrorKind::Utf8 { err, .. } => {
                // The record is not kept: it is read again, as bytes.
                let cause = "the text is not valid UTF-8; set the property `encoding`";
                let mut bytes = ByteRecord::new();
                let raw = self.source.raw(self.start.byte..self.place().byte);
                let (raw, _) = raw.unwrap_or_default();
                let _ = self
                    .builder
                    .from_reader(raw.as_slice())
                    .read_byte_record(&mut bytes);
                self.bytes = bytes;
                self.bad_row(cause, self.bytes_field(err.field()))
            }
            other => self.source.fail(format!("{other:?}")).into(),
        }
    }

    fn too_long(&self, line: u64) -> RecordError {
        let limit = self.source.max_record_length();
        let cause =
            format!("the record is longer than `max.record.length`, {limit} bytes; is a quote not closed?");
        RecordError::new(self.source.name(), line, cause)
    }

    /// Returns the line of the current row. Counts from its end, because `csv` skips blank lines and comments before it;
    /// after a row that ended with CRLF, it has not counted the line feed yet.
    fn line(&self) -> u64 {
        let end = self.place();
        let within = memchr::memchr_iter(b'\n', self.row.as_slice().as_bytes()).count() as u64;
        let ended = !self.crlf && self.open_end != Some(end.byte);
        end.line.saturating_sub(within + u64::from(ended))
    }

    /// Returns whether the input ended within quotes: then more input would extend the row.
    fn is_open(&self) -> Result<bool, ResourceError> {
        let content = self.source.content(self.start.byte)?;
        let row = content.bytes.take(self.source.max_record_length() as u64);
        let mut longer = ByteRecord::new();
        let read = self
            .builder
            .from_reader(row.chain(b"\nmore".as_slice()))
            .read_byte_record(&mut longer);
        read.map_err(|error| self.source.fail(error))?;
        Ok(match self.source.encoding() == UTF_8 {
            true => longer != *self.row.as_byte_record(),
            false => longer != self.bytes,
        })
    }

    /// Returns whether text follows a closing quote in the current row: the quote may be another field's, lines later.
    fn text_follows_quote(&self) -> bool {
        let values = match self.source.encoding() == UTF_8 {
            true => self.row.as_slice().as_bytes(),
            false => self.bytes.as_slice(),
        };
        // Only such rows are read once more.
        self.quotes.are_suspicious(values)
            && self
                .source
                .raw(self.start.byte..self.place().byte)
                .is_some_and(|(raw, _)| self.quotes.text_follows(&raw))
    }

    /// Rejects the line in which the current row begins, and continues at the next one.
    fn bad_quotes(&mut self, cause: &'static str) -> Result<bool, ReadError> {
        let (line, raw) = self.skip_row()?;
        let error = RecordError::new(self.source.name(), line, cause);
        Err(error.with_raw(raw, self.source.encoding()).into())
    }

    /// Continues at the line after the one in which the current row begins. Returns that line, with its number.
    fn skip_row(&mut self) -> Result<(u64, Vec<u8>), ResourceError> {
        let content = self.source.content(self.start.byte)?;
        let mut lines = Lines::new(content, self.start.line, self.source.max_record_length());
        let (mut number, mut line) = (self.start.line, Vec::new());
        loop {
            let next = lines.next(&mut line).map_err(|error| self.source.fail(error))?;
            if !matches!(next, NextLine::Line) {
                line.clear();
            }
            if !matches!(next, NextLine::Line) || !self.quotes.is_skipped(&line) {
                break;
            }
            number = lines.line;
        }
        self.record += 1;
        self.base = Place {
            byte: lines.byte,
            line: lines.line,
            record: self.record,
            ..Place::default()
        };
        self.rows = self
            .builder
            .from_reader(Limited::new(lines.into_content(), &self.source));
        Ok((number, line))
    }

    fn add_extras(&mut self) -> Result<(), ReadError> {
        let raw = match self.extras.contains(&Extra::Raw) {
            true => self
                .form
                .row(&self.row)
                .map_err(|cause| self.bad_row(cause, None))?,
            false => String::new(),
        };
        for extra in &self.extras {
            match extra {
                Extra::Raw => self.row.push_field(&raw),
                Extra::File => self.row.push_field(self.source.name()),
                Extra::Line => self.row.push_field(&self.line().to_string()),
                Extra::Record => self.row.push_field(&self.record.to_string()),
            }
        }
        Ok(())
    }
}

impl Records for Rows {
    fn advance(&mut self) -> Result<bool, ReadError> {
        self.start = self.place();
        self.rows.get_mut().next_record();
        if !self.read()? {
            return Ok(false);
        }
        if self.rows.get_ref().ended && self.is_open()? {
            return self.bad_quotes("a quote is not closed; close it, or set `quote` to another character");
        }
        if self.strict && self.text_follows_quote() {
            return self.bad_quotes(
                "text follows a closing quote; double the quotes within a field, or set `quote` to another character",
            );
        }
        self.record += 1;
        if self.place().byte - self.start.byte > self.source.max_record_length() as u64 {
            return Err(self.too_long(self.start.line).into());
        }
        let fields = self.row.len();
        let width = *self.width.get_or_insert(fields);
        if self.strict && fields != width {
            let cause = format!("the row has {fields} fields, but {width} are expected");
            return Err(self.bad_row(cause, None));
        }
        if !self.extras.is_empty() {
            // An added field has its place after the last column.
            (fields..width).for_each(|_| self.row.push_field(""));
            self.row.truncate(width);
            self.add_extras()?;
        }
        Ok(true)
    }

    fn place(&self) -> Place {
        let position = self.rows.position();
        Place {
            byte: self.base.byte + position.byte(),
            line: self.base.line + position.line() - 1,
            record: self.record,
            ..Place::default()
        }
    }
}

impl<T: DeserializeOwned> Items<T> for Rows {
    /// Fails if the header has none of the item's fields, which without a row would not be noticed.
    fn check(&self) -> Result<(), ReadError> {
        let mut names = self.header().filter(|name| !name.is_empty()).peekable();
        let fields = fields_of::<T>().unwrap_or_default();
        if !self.strict || names.peek().is_none() || names.any(|name| fields.contains(&name)) {
            return Ok(());
        }
        let is_added = |field: &str| self.names.iter().flatten().any(|name| name == field);
        let missing: Vec<&str> = fields.iter().copied().filter(|field| !is_added(field)).collect();
        match missing[..] {
            [] => Ok(()),
            [missing] => Err(self.no_column(missing)),
            [first, ..] => {
                let cause = format!("it has none of the columns `{}`", missing.join("`, `"));
                Err(self.other_header(&cause, first))
            }
        }
    }

    /// A row that is longer or shorter than the header may show that the header lacks a column.
    fn explain(&self, error: ReadError) -> ReadError {
        let (Some(names), Some(width), true) = (&self.names, self.width, self.strict) else {
            return error;
        };
        if self.row.len() == width {
            return error;
        }
        let mut row: StringRecord = self.row.iter().take(width).collect();
        // Added fields may be numbers.
        (row.len()..names.len()).for_each(|index| row.push_field(if index < width { "" } else { "0" }));
        match from_row::<T>(Some(names), &row) {
            Err(RowError {
                missing: Some(missing),
                ..
            }) => self.no_column(missing),
            _ => error,
        }
    }

    fn item(&mut self) -> Result<T, ReadError> {
        from_row(self.names.as_ref(), &self.row).map_err(|error| self.bad_item(error))
    }
}

/// Returns the place of the next row, after a line feed that `csv` leaves behind, and whether its line ends with CRLF.
fn after_line_end(source: &Source, mut place: Place) -> Result<(Place, bool), ReadError> {
    let content = source.content(place.byte)?;
    let mut line = Vec::new();
    let limit = source.max_record_length() as u64;
    let mut bytes = io::BufReader::new(content.bytes.take(limit));
    let fail = |error| source.fail(error);
    bytes.read_until(b'\n', &mut line).map_err(fail)?;
    if line == b"\n" {
        place.byte += 1;
        place.line += 1;
        line.clear();
        bytes.read_until(b'\n', &mut line).map_err(fail)?;
    }
    Ok((place, line.ends_with(b"\r\n")))
}

/// Returns the row as text, or the index of the bad field and the cause.
fn decoded(encoding: &'static Encoding, bytes: &ByteRecord) -> Result<StringRecord, (usize, String)> {
    let (mut row, mut text) = (
        StringRecord::with_capacity(bytes.as_slice().len(), bytes.len()),
        String::new(),
    );
    for (index, field) in bytes.iter().enumerate() {
        text.clear();
        decode(encoding, field, &mut text).map_err(|cause| (index, cause))?;
        row.push_field(&text);
    }
    Ok(row)
}

/// Returns a name that occurs twice. Columns without a name may repeat.
fn duplicate(names: &StringRecord) -> Option<&str> {
    let mut seen = std::collections::BTreeSet::new();
    names.iter().find(|name| !name.is_empty() && !seen.insert(*name))
}

/// Fails when a record is longer than the limit, so that a missing quote does not read the whole file into memory.
struct Limited {
    bytes: Box<dyn Read + Send>,
    limit: usize,
    /// The bytes that may be read for the current record.
    left: usize,
    exceeded: bool,
    /// True at the end of the content.
    ended: bool,
}

impl Limited {
    fn new(content: Content, source: &Source) -> Self {
        Self {
            bytes: content.bytes,
            limit: source.max_record_length(),
            left: source.max_record_length(),
            exceeded: false,
            ended: false,
        }
    }

    fn next_record(&mut self) {
        self.left = self.limit;
    }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.exceeded = true;
            return Err(io::Error::other("the record is too long"));
        }
        let count = self.bytes.read(buffer)?;
        self.ended = count == 0 && !buffer.is_empty();
        self.left = self.left.saturating_sub(count);
        Ok(count)
    }
}
