//! The rows of a delimited file.

use std::io;
use std::ops::Range;

use batch_runtime::BatchArtifact;
use batch_runtime::xml::suggest::did_you_mean;
use csv::StringRecord;
use serde::de::DeserializeOwned;

use super::format::{DelimitedFormat, RowFormat, other_delimiter};
use super::split::{Characters, Fields, RowEnd};
use crate::error::{Field, Origin, ReadError, RecordError, ResourceError};
use crate::file::{Bytes, Format, Items, NextLine, OpenFile, Place, Records, Source, decode};
use crate::rows::{RowError, fields_of, from_row, is_same_name, lacking};

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
        self.rows.header != Some(false) && self.rows.columns.is_empty()
    }

    /// Fails if a file with a header would be read as one without, because the columns have names: they may be meant for the writer.
    fn check_columns(&self, source: &Source, bytes: &mut Bytes) -> Result<(), ReadError> {
        let columns = &self.rows.columns;
        let name = match self.rows.header {
            _ if columns.is_empty() => None,
            Some(false) => None,
            Some(true) => Some("`header` is `true`".to_owned()),
            None => {
                let row = self.first_row(source, bytes)?;
                let mut fields = row.iter().filter(|field| !field.trim().is_empty());
                let name = fields.find(|field| columns.iter().any(|column| is_same_name(column, field)));
                name.map(|name| format!("its first row has the name `{}`", name.trim()))
            }
        };
        match name {
            Some(found) => Err(source.fail(format!("{found}, but `columns` names the fields of a file without a header: remove `columns`, or set its `target` to the writer; without a header, set `header` to `false`")).into()),
            None => Ok(()),
        }
    }

    /// Returns the first row, which stays unread; no fields if it is not one.
    fn first_row(&self, source: &Source, bytes: &mut Bytes) -> Result<StringRecord, ResourceError> {
        let (characters, mut fields) = (self.format.characters(&self.rows), Fields::default());
        let found = next_row(bytes, &characters, &mut fields, source.max_record_length());
        let mut row = StringRecord::new();
        if let NextRow::Row { length, .. } = found.map_err(|error| source.fail(error))?
            && fields
                .read(
                    &bytes.unread()[..length],
                    &characters,
                    source.encoding(),
                    &mut row,
                )
                .is_err()
        {
            row.clear();
        }
        Ok(row)
    }

    /// Returns the names of the fields; `fields` are set to the fields of the header. `bytes` are those after the lines that are skipped.
    fn names(
        &self,
        source: &Source,
        bytes: &mut Bytes,
        fields: &mut Fields,
    ) -> Result<Option<StringRecord>, ReadError> {
        if !self.has_header() {
            let columns = &self.rows.columns;
            return Ok((!columns.is_empty()).then(|| StringRecord::from(columns.clone())));
        }
        let characters = self.format.characters(&self.rows);
        let fail = |cause: &str| source.fail(format!("cannot read the header: {cause}"));
        let limit = source.max_record_length();
        let found = next_row(bytes, &characters, fields, limit).map_err(|error| source.fail(error))?;
        let mut names = StringRecord::new();
        match found {
            NextRow::End => {}
            NextRow::TooLong => return Err(fail("it is longer than `max.record.length`").into()),
            NextRow::Open => return Err(fail(NOT_CLOSED).into()),
            NextRow::Row { .. } if self.rows.strict && fields.text_follows_quote => {
                return Err(fail(TEXT_FOLLOWS).into());
            }
            NextRow::Row { length, end } => {
                let raw = bytes.consume(end);
                let raw = &bytes.slice(&raw)[..length];
                let read = fields.read(raw, &characters, source.encoding(), &mut names);
                read.map_err(|(_, _, cause)| fail(&cause))?;
            }
        }
        Ok(Some(names))
    }

    /// Checks the names of the columns, and adds the names of the added fields.
    fn add_names(names: &mut StringRecord, source: &Source) -> Result<(), ResourceError> {
        if let Some(name) = duplicate(names) {
            return Err(source.fail(format!("its header has two columns `{name}`")));
        }
        for name in source.added_names() {
            if names.iter().any(|column| column == name) {
                let cause =
                    format!("it has a column `{name}` already; choose another name for the added field");
                return Err(source.fail(cause));
            }
        }
        source.added_names().for_each(|name| names.push_field(name));
        Ok(())
    }
}

const NOT_CLOSED: &str = "a quote is not closed; close it, or set `quote` to another character";

const TEXT_FOLLOWS: &str =
    "text follows a closing quote; double the quotes within a field, or set `quote` to another character";

impl Format for Delimited {
    type Records = Rows;

    fn start(&self, file: OpenFile<'_>) -> Result<Rows, ReadError> {
        let source = file.source();
        let checked = self.format.check(self.rows.comment);
        checked.map_err(|cause| source.fail(cause))?;
        // The header, or the first row, is read again after a restart.
        let resume_at = file.resume_at.filter(|_| !self.rows.columns.is_empty());
        let mut input = match &resume_at {
            Some(place) => source.open_at(place)?,
            None => source.open_after(file.input.skip_lines)?,
        };
        let mut fields = Fields::default();
        let mut names = self.names(&source, &mut input, &mut fields)?;
        if resume_at.is_none() {
            self.check_columns(&source, &mut input)?;
        }
        let width = names.as_ref().map(StringRecord::len);
        if let Some(names) = &mut names {
            Self::add_names(names, &source)?;
        }
        let record = resume_at.map_or(0, |place| place.record);
        let mut rows = Rows {
            start: input.place(record),
            input,
            characters: self.format.characters(&self.rows),
            quoted_header: fields.is_first_quoted(),
            fields,
            names,
            width,
            has_header: self.has_header(),
            strict: self.rows.strict,
            record,
            raw: 0..0,
            row: StringRecord::new(),
            source,
        };
        if let (Some(place), None) = (&file.resume_at, resume_at) {
            rows.resume(place)?;
        }
        Ok(rows)
    }

    fn other_lines(&self) -> Option<u64> {
        Some(u64::from(self.has_header()))
    }
}

/// Reads rows one by one.
pub struct Rows {
    input: Bytes,
    characters: Characters,
    fields: Fields,
    names: Option<StringRecord>,
    /// The number of fields of a row; unknown before the first one, if they have no names.
    width: Option<usize>,
    has_header: bool,
    /// True if the header begins with a quote.
    quoted_header: bool,
    strict: bool,
    record: u64,
    /// The place of the current row.
    start: Place,
    /// The current row in the buffer, without its line end; nothing if it is too long.
    raw: Range<usize>,
    row: StringRecord,
    source: Source,
}

/// The next row of a file, which is in the buffer and not consumed.
enum NextRow {
    /// Its length without and with its line end.
    Row {
        length: usize,
        end: usize,
    },
    TooLong,
    /// The file ends within quotes.
    Open,
    End,
}

/// Finds the next row, after blank lines and comments.
fn next_row(
    input: &mut Bytes,
    characters: &Characters,
    fields: &mut Fields,
    limit: usize,
) -> io::Result<NextRow> {
    loop {
        let rest = input.unread();
        if rest.is_empty() && input.ended() {
            return Ok(NextRow::End);
        }
        if characters.is_skipped(rest) {
            input.skip_lines(1)?;
            continue;
        }
        let found = match rest.is_empty() {
            true => RowEnd::NotYet,
            false => characters.split(rest, input.ended(), fields),
        };
        match found {
            RowEnd::At(length, _) if length > limit => return Ok(NextRow::TooLong),
            RowEnd::At(length, end) => return Ok(NextRow::Row { length, end }),
            RowEnd::NotYet if rest.len() > limit.saturating_add(1) => return Ok(NextRow::TooLong),
            RowEnd::NotYet => input.fill()?,
            RowEnd::Open => return Ok(NextRow::Open),
        }
    }
}

impl Rows {
    /// Continues at the place of a checkpoint. If the rows have no names, the first good one of the file decides how many fields they have.
    fn resume(&mut self, place: &Place) -> Result<(), ReadError> {
        while self.width.is_none() && self.input.place(0).byte < place.byte {
            match self.advance() {
                Ok(_) | Err(ReadError::Record(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.input = self.source.open_at(place)?;
        self.record = place.record;
        self.start = self.input.place(self.record);
        Ok(())
    }

    /// Returns the error for the current row, which is not an item.
    fn bad_item(&self, error: RowError) -> ReadError {
        if let (Some(missing), true) = (error.missing, self.strict && self.names.is_some()) {
            return self.no_column(missing);
        }
        let field = error.field(self.names.as_ref(), &self.row);
        self.bad_row(error, field)
    }

    /// Returns the names of the columns, without the added fields.
    fn columns(&self) -> impl Iterator<Item = &str> + Clone {
        let names = self.names.iter().flat_map(StringRecord::iter);
        names.take(self.width.unwrap_or(usize::MAX))
    }

    /// Returns the names of the added fields.
    fn added(&self) -> impl Iterator<Item = &str> + Clone {
        let names = self.names.iter().flat_map(StringRecord::iter);
        names.skip(self.width.unwrap_or(usize::MAX))
    }

    /// Returns the error for a file whose header, or the property `columns`, lacks a column.
    fn no_column(&self, missing: &str) -> ReadError {
        self.other_columns(&format!("no column `{missing}`"), missing)
    }

    /// Fails if the header is one column that contains another delimiter outside of quotes.
    fn check_delimiter(&self) -> Result<(), ReadError> {
        let Some(hint) = self.other_delimiter() else {
            return Ok(());
        };
        let column = self.columns().next().unwrap_or_default();
        let cause = format!("it has one column, `{column}`{hint}; if not, set `strict` to `false`");
        Err(self.source.fail(cause).into())
    }

    /// Returns a hint if the only column contains another delimiter outside of quotes.
    fn other_delimiter(&self) -> Option<String> {
        let mut columns = self.columns();
        let single = columns
            .next()
            .filter(|_| columns.next().is_none() && !self.quoted_header)?;
        match other_delimiter(single, self.characters.delimiter)? {
            '\t' => Some("; if a tab separates the columns, set `delimiter` to `tab`".to_owned()),
            other => Some(format!(
                "; if `{other}` separates the columns, set `delimiter` to it"
            )),
        }
    }

    /// Returns the error for a file whose columns do not match the fields of the items.
    fn other_columns(&self, lacks: &str, missing: &str) -> ReadError {
        let columns: Vec<_> = self.columns().map(|name| format!("`{name}`")).collect();
        let hint = self.other_delimiter();
        let hint = hint.unwrap_or_else(|| did_you_mean(missing, self.columns()));
        let place = if self.has_header { "it" } else { "`columns`" };
        let cause = format!("{place} has {lacks}, but {}{hint}", columns.join(", "));
        self.source.fail(cause).into()
    }

    fn bad_row(
        &self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        field: Option<Field>,
    ) -> ReadError {
        RecordError::new(self.source.name(), self.start.line, cause)
            .with_field(field)
            .with_raw(self.input.slice(&self.raw), self.source.encoding())
            .into()
    }

    /// Rejects the first line of the current row, and continues at the next one: a row without the end that it should have may
    /// contain others.
    fn bad_line(&mut self, cause: &str) -> ReadError {
        let line = self.input.next_line(self.source.max_record_length());
        self.raw = match line {
            Ok(NextLine::Line(place)) => place,
            Ok(NextLine::TooLong | NextLine::End) => 0..0,
            Err(error) => return self.source.fail(error).into(),
        };
        self.bad_row(cause.to_owned(), None)
    }

    /// Sets the current row to the text of the record in the buffer.
    fn decode(&mut self) -> Result<(), ReadError> {
        let (raw, encoding) = (self.input.slice(&self.raw), self.source.encoding());
        let decoded = self.fields.read(raw, &self.characters, encoding, &mut self.row);
        decoded.map_err(|(index, value, cause)| {
            let names = self.names.as_ref();
            let field = Field {
                number: index + 1,
                name: names.and_then(|names| names.get(index)).map(str::to_owned),
                value: String::from_utf8_lossy(&value).into_owned(),
            };
            self.bad_row(cause, Some(field))
        })
    }

    fn add_fields(&mut self) -> Result<(), ReadError> {
        let mut raw = String::new();
        if self.source.adds_raw() {
            let decoded = decode(self.source.encoding(), self.input.slice(&self.raw), &mut raw);
            decoded.map_err(|cause| self.bad_row(cause, None))?;
        }
        self.source
            .add_to_row(&mut self.row, self.start.line, self.record, &raw);
        Ok(())
    }
}

impl Records for Rows {
    fn advance(&mut self) -> Result<bool, ReadError> {
        let limit = self.source.max_record_length();
        let next = next_row(&mut self.input, &self.characters, &mut self.fields, limit);
        let next = next.map_err(|error| self.source.fail(error))?;
        self.start = self.input.place(self.record);
        self.record += u64::from(!matches!(next, NextRow::End));
        match next {
            NextRow::End => return Ok(false),
            NextRow::TooLong => {
                return Err(self.bad_line(&format!(
                    "the record is longer than `max.record.length`, {limit} bytes; is a quote not closed?"
                )));
            }
            NextRow::Open => return Err(self.bad_line(NOT_CLOSED)),
            NextRow::Row { .. } if self.strict && self.fields.text_follows_quote => {
                return Err(self.bad_line(TEXT_FOLLOWS));
            }
            NextRow::Row { length, end } => {
                self.raw = self.input.consume(end);
                self.raw.end = self.raw.start + length;
            }
        }
        self.decode()?;
        let fields = self.row.len();
        let width = *self.width.get_or_insert(fields);
        if self.strict && fields != width {
            let cause = format!("the row has {fields} fields, but {width} are expected");
            return Err(self.bad_row(cause, None));
        }
        if self.source.adds_fields() {
            // An added field has its place after the last column.
            (fields..width).for_each(|_| self.row.push_field(""));
            self.row.truncate(width);
            self.add_fields()?;
        }
        Ok(true)
    }

    fn place(&self) -> Place {
        self.input.place(self.record)
    }

    fn origin(&self) -> Origin<'_> {
        self.source.origin(self.start.line, self.input.slice(&self.raw))
    }
}

impl<T: DeserializeOwned> Items<T> for Rows {
    /// Fails if no column is a field of the items, which would go unnoticed in a file without rows, or if a column nearly matches a
    /// field that has none.
    fn check(&self) -> Result<(), ReadError> {
        let columns = self.columns().filter(|name| !name.is_empty());
        match lacking::<T>(columns, self.added())[..] {
            [missing] if self.strict => Err(self.no_column(missing)),
            [first, ref rest @ ..] if self.strict => {
                let lacks = format!("none of the columns `{first}`, `{}`", rest.join("`, `"));
                Err(self.other_columns(&lacks, first))
            }
            // The fields of a type are the columns that are meant.
            _ if self.strict && self.has_header && fields_of::<T>().is_none() => self.check_delimiter(),
            _ => Ok(()),
        }
    }

    /// If the fields of the items are not known, only the other files show whether the first row is a header.
    fn header(&self) -> Vec<String> {
        let is_unknown = self.has_header && self.strict && fields_of::<T>().is_none();
        let names = self.columns().filter(|name| is_unknown && !name.is_empty());
        names.map(str::to_owned).collect()
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

/// Returns a name that occurs twice. Columns without a name may repeat.
fn duplicate(names: &StringRecord) -> Option<&str> {
    let mut seen = std::collections::BTreeSet::new();
    names.iter().find(|name| !name.is_empty() && !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use batch_runtime::prelude::*;
    use batch_testing::ArtifactTest;

    use crate::file::counted;
    use crate::{DelimitedItemReader, RecordError};

    /// Reads the names of records, or the text of bad ones.
    #[derive(BatchArtifact)]
    struct Texts {
        #[batch_artifact]
        rows: DelimitedItemReader<(u64, String)>,
    }

    #[item_reader("Texts")]
    impl Texts {
        #[open]
        fn open(&mut self, checkpoint: Option<crate::file::ReadPosition>) -> Result<(), BatchError> {
            self.rows.open(checkpoint)
        }

        #[read_item]
        fn read(&mut self) -> Result<Option<String>, BatchError> {
            let error = match self.rows.read() {
                Ok(row) => return Ok(row.map(|(_, memo)| memo)),
                Err(error) => error,
            };
            let text = error
                .downcast_ref::<RecordError>()
                .map(|bad| bad.text().into_owned());
            text.map(Some).ok_or(error)
        }

        #[get_checkpoint_info]
        fn checkpoint(&mut self) -> crate::file::ReadPosition {
            self.rows.checkpoint()
        }
    }

    /// Whatever a file contains, its content is read once, also for the text of bad records.
    // Spec: INPUT-03
    #[test]
    fn content_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let (mut content, mut expected) = ("id;memo\n".to_owned(), Vec::new());
        for number in 0..20_000 {
            let (row, text) = match number % 100 {
                1 => (
                    format!("{number};\"says \"\"hi\"\"\"\n"),
                    "says \"hi\"".to_owned(),
                ),
                2 => (format!("{number};\"two\nlines\"\n"), "two\nlines".to_owned()),
                3 => (format!("x{number};bad\n"), format!("x{number};bad")),
                4 => (format!("{number};\"a\" b\n"), format!("{number};\"a\" b")),
                _ => (format!("{number};plain\n"), "plain".to_owned()),
            };
            content += &row;
            expected.push(text);
        }
        for name in ["in.csv", "in.csv.gz"] {
            let path = folder.path().join(name);
            let file = std::fs::File::create(&path).unwrap();
            if name.ends_with(".gz") {
                let mut stream = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                stream.write_all(content.as_bytes()).unwrap();
                stream.finish().unwrap();
            } else {
                (&file).write_all(content.as_bytes()).unwrap();
            }
            let path = path.display().to_string();
            let texts = ArtifactTest::new()
                .property("resource", &path)
                .property("delimiter", ";")
                .read::<String>(LoadedArtifact::of::<Texts>)
                .unwrap();
            assert!(texts == expected, "{name}");
            assert_eq!(counted::bytes(&path), content.len() as u64, "{name}");
        }
    }
}
