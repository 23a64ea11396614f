//! Lines whose fields have fixed widths.

use std::str::FromStr;

use batch_runtime::BatchArtifact;
use csv::StringRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::records::{LineFormat, LineRecords};
use crate::error::{Origin, ReadError};
use crate::file::{
    Encode, FileItemReader, FileItemWriter, Format, Items, OpenFile, Place, Records, TextOutput,
};
use crate::rows::{Rows, from_row};

/// Reads lines whose fields have fixed widths as items of type `T`.
///
/// It has the properties of [`FileInput`](crate::file::FileInput), and:
///
/// | property | default | |
/// |---|---|---|
/// | `columns` | required | the fields with their characters, counted from 1: `account 1-10, amount 11-18, text 19-`; the last one may be open |
/// | `trim` | `true` | whether blanks around fields are removed |
/// | `strict` | `true` | whether a line must have all characters of the columns, and no other ones; `false` reads missing ones as blanks |
/// | `comment` | none | lines that begin with this character are not read |
/// | `blank.lines` | `skip` | `read`: an empty line is a record |
///
/// A column whose name nearly matches an `Option` field without a column is a [`ResourceError`](crate::ResourceError), unless `strict` is
/// `false`.
///
/// ```
/// use batch_items::FixedWidthItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Booking {
///     account: String,
///     amount: i64,
/// }
///
/// #[item_reader("BookingReader")]
/// type BookingReader = FixedWidthItemReader<Booking>;
/// ```
pub type FixedWidthItemReader<T> = FileItemReader<FixedWidth, T>;

/// Writes items as lines whose fields have fixed widths, exactly once.
///
/// It has the properties of [`FileOutput`](crate::file::FileOutput) and [`TextOutput`], and `columns` as of
/// [`FixedWidthItemReader`], each with an alignment: `account 1-10, amount 11-18 right, number 19-24 zeros`. The default is
/// `left`; `zeros` aligns to the right and fills with zeros, after a sign. The fields of an item are found by name, those of
/// a tuple by their order; `note? 25-40` is a field that items may lack. A value that
/// is too long is an [`EncodeError`](crate::EncodeError): nothing is cut.
pub type FixedWidthItemWriter<T, F = ()> = FileItemWriter<FixedWidthOutput, T, F>;

/// The format of a reader of fixed widths.
#[derive(BatchArtifact)]
pub struct FixedWidth {
    /// The fields with their characters, counted from 1: `account 1-10, amount 11-18, text 19-`; the last one may be open.
    #[batch_property(name = "columns")]
    columns: Columns,
    /// Whether blanks around fields are removed.
    #[batch_property(name = "trim", value = "true")]
    trim: bool,
    /// Whether a line must have all characters of the columns, and no other ones; `false` reads missing ones as blanks.
    #[batch_property(name = "strict", value = "true")]
    strict: bool,
    #[batch_artifact]
    lines: LineFormat,
}

/// The columns of a line, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns(Vec<Column>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    /// The characters before it.
    start: usize,
    /// The characters before its end; `None` for the end of the line.
    end: Option<usize>,
    align: Align,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
    Zeros,
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let columns: Result<Vec<Column>, String> = text.split(',').map(column).collect();
        let columns = columns?;
        let mut before = 0;
        for (index, column) in columns.iter().enumerate() {
            if column.start < before {
                return Err(format!("column `{}` overlaps the one before it", column.name));
            }
            match column.end {
                Some(end) => before = end,
                None if index + 1 == columns.len() => {}
                None => return Err(format!("only the last column can be open, not `{}`", column.name)),
            }
            if columns[..index].iter().any(|earlier| earlier.name == column.name) {
                return Err(format!("there are two columns `{}`", column.name));
            }
        }
        Ok(Self(columns))
    }
}

/// The longest line with columns, in characters: the default of `max.record.length` is as long.
const LONGEST: usize = 1 << 20;

/// Parses `amount 11-18 right`.
fn column(text: &str) -> Result<Column, String> {
    let wrong = || {
        format!(
            "expected a name and its characters, such as `amount 11-18`, found `{}`",
            text.trim()
        )
    };
    let mut words = text.split_whitespace();
    let (Some(name), Some(range)) = (words.next(), words.next()) else {
        return Err(wrong());
    };
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let from: usize = from.parse().map_err(|_| wrong())?;
    let to: Option<usize> = match to {
        "" => None,
        to => Some(to.parse().map_err(|_| wrong())?),
    };
    if from == 0 || to.is_some_and(|to| to < from) {
        return Err(wrong());
    }
    if to.unwrap_or(from) > LONGEST {
        return Err(format!("column `{name}` ends after character {LONGEST}"));
    }
    let align = match (words.next(), words.next()) {
        (None | Some("left"), None) => Align::Left,
        (Some("right"), None) => Align::Right,
        (Some("zeros"), None) => Align::Zeros,
        (other, _) => {
            let other = other.unwrap_or_default();
            return Err(format!(
                "expected `left`, `right` or `zeros` for column `{name}`, found `{other}`"
            ));
        }
    };
    Ok(Column {
        name: name.to_owned(),
        start: from - 1,
        end: to,
        align,
    })
}

impl Format for FixedWidth {
    type Records = FixedWidthRecords;

    fn start(&self, file: OpenFile<'_>) -> Result<FixedWidthRecords, ReadError> {
        let lines = self.lines.start(&file)?;
        let mut names: StringRecord = self.columns.0.iter().map(|column| column.name.as_str()).collect();
        lines.added_names().for_each(|name| names.push_field(name));
        Ok(FixedWidthRecords {
            lines,
            names,
            columns: self.columns.0.clone(),
            trim: self.trim,
            strict: self.strict,
            row: StringRecord::new(),
        })
    }

    fn other_lines(&self) -> Option<u64> {
        Some(0)
    }
}

/// The lines of a file, as rows.
pub struct FixedWidthRecords {
    lines: LineRecords,
    names: StringRecord,
    columns: Vec<Column>,
    trim: bool,
    strict: bool,
    row: StringRecord,
}

impl Records for FixedWidthRecords {
    fn advance(&mut self) -> Result<bool, ReadError> {
        if !self.lines.advance()? {
            return Ok(false);
        }
        if let Some(cause) = self.split() {
            return Err(self.lines.bad(cause, None));
        }
        self.lines.add_to(&mut self.row);
        Ok(true)
    }

    fn place(&self) -> Place {
        self.lines.place()
    }

    fn origin(&self) -> Origin<'_> {
        self.lines.origin()
    }
}

impl FixedWidthRecords {
    /// Splits the line; returns the reason if its length is wrong.
    fn split(&mut self) -> Option<String> {
        self.row.clear();
        let text = self.lines.text();
        // Byte positions are positions of characters in ASCII, which most such files are.
        let ends: Option<Vec<usize>> = (!text.is_ascii()).then(|| {
            text.char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .collect()
        });
        let length = ends.as_ref().map_or(text.len(), |ends| ends.len() - 1);
        let byte = |character: usize| ends.as_ref().map_or(character, |ends| ends[character]);
        let last = self.columns.last()?;
        let needed = last.end.unwrap_or(last.start);
        if self.strict && (length < needed || (last.end.is_some() && length > needed)) {
            return Some(format!(
                "the line has {length} characters, but the columns have {needed}"
            ));
        }
        for column in &self.columns {
            let (start, end) = (column.start.min(length), column.end.unwrap_or(length).min(length));
            let field = &text[byte(start)..byte(end.max(start))];
            self.row.push_field(if self.trim { field.trim() } else { field });
        }
        None
    }
}

impl<T: DeserializeOwned> Items<T> for FixedWidthRecords {
    fn check(&self) -> Result<(), ReadError> {
        match self.strict {
            true => self.lines.check_names::<T>(&self.names),
            false => Ok(()),
        }
    }

    fn item(&mut self) -> Result<T, ReadError> {
        let names = Some(&self.names);
        from_row(names, &self.row).map_err(|error| self.lines.bad_row(error, names, &self.row))
    }
}

/// The format of a writer of fixed widths.
#[derive(BatchArtifact)]
pub struct FixedWidthOutput {
    /// The fields with their characters, counted from 1: `account 1-10, amount 11-18, text 19-`; the last one may be open.
    #[batch_property(name = "columns")]
    columns: Columns,
    #[batch_artifact]
    text: TextOutput,
    rows: Rows,
    line: String,
    scratch: String,
}

impl FixedWidthOutput {
    /// Sets the line to the fields of an item, the only row of `rows`.
    fn format(&mut self) -> Result<(), String> {
        self.line.clear();
        let mut length = 0;
        for (index, column) in self.columns.0.iter().enumerate() {
            let value = self.rows.shown(0, index, &mut self.scratch);
            if value.contains(['\n', '\r']) {
                return Err(format!("field `{}` contains a line end", column.name));
            }
            self.line.extend(std::iter::repeat_n(' ', column.start - length));
            length = column.start + column.append(value, &mut self.line)?;
        }
        if self.line.is_empty() {
            return Err("all fields are empty, and an empty line is no record".to_owned());
        }
        self.line.push_str(self.text.line_end.as_str());
        Ok(())
    }
}

impl Column {
    /// Appends a value, and returns the number of characters.
    fn append(&self, value: &str, line: &mut String) -> Result<usize, String> {
        let length = value.chars().count();
        let Some(width) = self.end.map(|end| end - self.start) else {
            line.push_str(value);
            return Ok(length);
        };
        let Some(fill) = width.checked_sub(length) else {
            return Err(format!(
                "field `{}` has {width} characters, but its value has {length}: {value:?}",
                self.name
            ));
        };
        // Nothing is not zero.
        let filler = if self.align == Align::Zeros && length > 0 {
            '0'
        } else {
            ' '
        };
        let blanks = std::iter::repeat_n(filler, fill);
        let sign = usize::from(self.align == Align::Zeros && value.starts_with(['-', '+']));
        match self.align {
            Align::Left => {
                line.push_str(value);
                line.extend(blanks);
            }
            Align::Right | Align::Zeros => {
                line.push_str(&value[..sign]);
                line.extend(blanks);
                line.push_str(&value[sign..]);
            }
        }
        Ok(width)
    }
}

impl<T: Serialize> Encode<T> for FixedWidthOutput {
    fn form(&self) -> String {
        format!("{:?} {}", self.columns, self.text.form())
    }

    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        header.map_or(Ok(()), |header| self.text.append(&header, out))
    }

    fn prepare(&mut self, first: &T) -> Result<(), String> {
        self.rows
            .select(self.columns.0.iter().map(|column| column.name.as_str()));
        self.rows.learn(first)
    }

    fn items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a T>,
        _first: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), (usize, String)>
    where
        T: 'a,
    {
        for (index, item) in items.enumerate() {
            let fail = |cause| (index, cause);
            self.rows.clear();
            self.rows.push(item).map_err(fail)?;
            self.format().map_err(fail)?;
            self.text.append(&self.line, out).map_err(fail)?;
        }
        Ok(())
    }

    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        footer.map_or(Ok(()), |footer| self.text.append(&footer, out))
    }
}
