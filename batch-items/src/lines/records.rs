//! The lines of a file, one by one.

use std::error::Error;
use std::ops::Range;

use batch_runtime::BatchArtifact;
use csv::StringRecord;
use serde::de::DeserializeOwned;

use crate::added::Added;
use crate::delimited::Character;
use crate::error::{Field, Origin, ReadError, RecordError};
use crate::file::{Bytes, NextLine, OpenFile, Place, Source, decode};
use crate::rows::{RowError, lacking};

/// The properties of formats whose records are lines.
///
/// | property | default | |
/// |---|---|---|
/// | `comment` | none | lines that begin with this character are not read |
/// | `blank.lines` | `skip` | `read`: an empty line is a record |
#[derive(BatchArtifact)]
pub(crate) struct LineFormat {
    #[batch_property(name = "comment")]
    comment: Option<Character>,
    #[batch_property(name = "blank.lines", value = "skip")]
    blank_lines: BlankLines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlankLines {
    Skip,
    Read,
}

crate::choices! {
    BlankLines { "skip" => Skip, "read" => Read }
}

impl LineFormat {
    /// Starts reading lines.
    pub(crate) fn start(&self, file: &OpenFile<'_>) -> Result<LineRecords, ReadError> {
        let source = file.source();
        let (input, record) = file.bytes(&source)?;
        Ok(LineRecords {
            input,
            record,
            comment: self.comment.map(|Character(character)| character),
            skip_blank: self.blank_lines == BlankLines::Skip,
            current: 0..0,
            text: String::new(),
            line: 0,
            source,
        })
    }
}

/// Reads lines one by one.
pub struct LineRecords {
    input: Bytes,
    record: u64,
    comment: Option<u8>,
    skip_blank: bool,
    /// The current line: its place in the buffer, and its text.
    current: Range<usize>,
    text: String,
    /// Its number.
    line: u64,
    source: Source,
}

impl LineRecords {
    /// Advances to the next line that is a record; `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            self.line = self.input.line;
            let next = self.input.next_line(self.source.max_record_length());
            match next.map_err(|error| self.source.fail(error))? {
                NextLine::End => return Ok(false),
                NextLine::TooLong => {
                    (self.record, self.current) = (self.record + 1, 0..0);
                    let limit = self.source.max_record_length();
                    return Err(self.bad(
                        format!("the line is longer than `max.record.length`, {limit} bytes"),
                        None,
                    ));
                }
                NextLine::Line(place) => self.current = place,
            }
            let first = self.bytes().first().copied();
            let is_blank = self.skip_blank && first.is_none();
            if !is_blank && (self.comment.is_none() || first != self.comment) {
                break;
            }
        }
        self.record += 1;
        self.text.clear();
        let bytes = self.input.slice(&self.current);
        match decode(self.source.encoding(), bytes, &mut self.text) {
            Ok(()) => Ok(true),
            Err(cause) => Err(self.bad(cause, None)),
        }
    }

    /// Returns the current line as it is in the file, without its end; nothing if it is too long.
    fn bytes(&self) -> &[u8] {
        self.input.slice(&self.current)
    }

    /// Returns the current line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the place of the next line.
    pub(crate) fn place(&self) -> Place {
        self.input.place(self.record)
    }

    /// Returns where the current line comes from.
    pub(crate) fn origin(&self) -> Origin<'_> {
        self.source.origin(self.line, self.bytes())
    }

    /// Returns the names of the added fields.
    pub(crate) fn added_names(&self) -> impl Iterator<Item = &str> {
        self.source.added_names()
    }

    /// Returns the added fields with their values for the current line.
    pub(crate) fn added(&self) -> Vec<Added<'_>> {
        self.source.added(self.line, self.record, &self.text)
    }

    /// Appends the added fields to a row.
    pub(crate) fn add_to(&self, row: &mut StringRecord) {
        self.source.add_to_row(row, self.line, self.record, &self.text);
    }

    /// Returns the error for the current line.
    pub(crate) fn bad(
        &self,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
        field: Option<Field>,
    ) -> ReadError {
        RecordError::new(self.source.name(), self.line, cause)
            .with_field(field)
            .with_raw(self.bytes(), self.source.encoding())
            .into()
    }

    /// Returns the error at a column of the current line.
    pub(crate) fn bad_at(&self, column: usize, cause: String) -> ReadError {
        RecordError::new(self.source.name(), self.line, cause)
            .with_column(column)
            .with_raw(self.bytes(), self.source.encoding())
            .into()
    }

    /// Returns the error for a row that is not an item.
    pub(crate) fn bad_row(
        &self,
        error: RowError,
        names: Option<&StringRecord>,
        row: &StringRecord,
    ) -> ReadError {
        let field = error.field(names, row);
        match (error.missing, names) {
            (Some(missing), Some(names)) => self.no_field(missing, names),
            _ => self.bad(error, field),
        }
    }

    /// Fails if `names` lacks a field of the items, probably by mistake. `names` are the columns or groups of the settings, followed by
    /// the added fields.
    pub(crate) fn check_names<T: DeserializeOwned>(&self, names: &StringRecord) -> Result<(), ReadError> {
        let given = names.len() - self.added_names().count();
        let lacking = lacking::<T>(names.iter().take(given), names.iter().skip(given));
        lacking
            .first()
            .map_or(Ok(()), |field| Err(self.no_field(field, names)))
    }

    fn no_field(&self, missing: &str, names: &StringRecord) -> ReadError {
        let columns: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let hint = batch_runtime::xml::suggest::did_you_mean(missing, names.iter());
        let cause = format!("there is no field `{missing}`, but {}{hint}", columns.join(", "));
        self.source.fail(cause).into()
    }
}
