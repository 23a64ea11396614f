//! The writer of Excel workbooks.

use std::error::Error;
use std::marker::PhantomData;
use std::str::FromStr;

use batch_items::compose::WriteItems;
use batch_items::file::{FileOutput, FramedPosition};
use batch_items::rows::Names;
use batch_items::{EncodeError, ResourceError};
use batch_runtime::prelude::*;
use batch_runtime::{BatchArtifact, ConfigurationError};
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use super::cells::{CellSink, Cells, append_names, check_text};
use super::columns::{Column, ColumnList};
use super::letters::letters;
use super::package::{Beginning, SHEET_END, SheetSize, check_length, deflate};
use super::sheet::{COLUMNS, ROWS};

/// Writes items as the rows of a sheet of Excel workbooks (XLSX), exactly once.
///
/// It has the properties of [`FileOutput`], but `if.exists` = `append` and `compression` are not possible, and:
///
/// | property | default | |
/// |---|---|---|
/// | `sheet` | `Sheet1` | the name of the sheet |
/// | `header` | `true` | whether the first row has the names of the fields; a tuple has none |
/// | `columns` | all | the fields that are written, by name and in this order, perhaps with a type and a format: `id, note?, day date, price number(0.00)`; also the header of a sheet without items. `note?` is a field that items may lack |
///
/// Without `columns`, the first item sets the fields. Later items may have them in another order or lack some, which are empty; a
/// further field is an [`EncodeError`].
///
/// # Values
///
/// The type is the last word of a column; its format, as in Excel, is in brackets after it:
///
/// | type | |
/// |---|---|
/// | none | a number is a number, a text is a text, and a boolean is a boolean |
/// | `text` | the text of any value, with all digits of a number |
/// | `number(#,##0.00)` | a number, also from a text such as `7.50` |
/// | `date(dd.mm.yyyy)` | a date, from a text such as `2024-02-29`; from 1900-03-01 to 9999-12-31 |
/// | `time(h:mm)` | a time of day, from a text such as `12:30:00` |
/// | `timestamp(yyyy-mm-dd hh:mm)` | a date and time, from a text such as `2024-02-29T12:30:00.125`, without a time zone |
///
/// A cell holds the value exactly, or the item is an [`EncodeError`]. **A number of Excel is a float of 64 bits**, so numbers with more than
/// 15 digits may be rejected; give their column the type `text`. NaN, infinity, subnormal numbers, fractions of a millisecond and dates
/// beyond those of Excel are rejected, too. So are texts with more than 32,767 characters or with a control character that XML lacks, and
/// an item without any value, because readers pass over its row. Excel shows 15 digits of a number.
///
/// A text stays a text, also if it looks like a number or a date, or begins with `=`. Lists and structs are texts of JSON. Null is an
/// empty cell, and an empty text is a cell with an empty text; [`XlsxItemReader`](crate::XlsxItemReader) reads both as an empty cell,
/// and a timestamp at midnight as a date.
///
/// A sheet has at most 1,048,576 rows and 16,384 columns; beyond that the step fails. `max.items.per.file` writes several workbooks.
///
/// # Exactly once
///
/// The sheet is the last part of the workbook, and it is compressed in pieces that end at checkpoints: a restart truncates the
/// file to one. So nothing is converted at the end. In memory are the rows of a chunk and, beside them, 2 MiB at most. Equal items and
/// checkpoints give equal files.
///
/// ```
/// use batch_columnar::XlsxItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Order {
///     customer: String,
///     amount: u32,
///     /// Such as `2024-02-29`.
///     day: Option<String>,
/// }
///
/// #[item_writer("OrderWriter")]
/// type OrderWriter = XlsxItemWriter<Order>;
/// ```
///
/// ```xml
/// <chunk reader="OrderReader" processor="Orders" writer="OrderWriter" commit-interval="1000">
///   <properties>
///     <property name="output" value="out/orders.xlsx" target="writer"/>
///     <property name="sheet" value="Orders" target="writer"/>
///     <property name="columns" value="customer, day date, amount number(#,##0)" target="writer"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct XlsxItemWriter<T> {
    #[batch_artifact]
    output: FileOutput,
    /// The name of the sheet.
    #[batch_property(name = "sheet", value = "Sheet1")]
    sheet: SheetName,
    /// Whether the first row has the names of the fields; a tuple has none.
    #[batch_property(name = "header", value = "true")]
    header: bool,
    /// The fields that are written, by name and in this order, perhaps with a type and a format: `id, note?, day date, price number(0.00)`;
    /// also the header of a sheet without items. `note?` is a field that items may lack. The default is all.
    #[batch_property(name = "columns")]
    columns: Option<ColumnList>,
    names: Names,
    /// The letters of the columns.
    letters: Vec<String>,
    cells: Cells,
    beginning: Option<Beginning>,
    /// The checksum of the settings that the file depends on.
    form: u32,
    written: SheetPosition,
    /// Rows of the sheet that are not yet in the file.
    rows: Vec<u8>,
    /// True if items were written since the mark, as a part of a composite writer.
    has_unmarked: bool,
    item: PhantomData<fn(T)>,
}

/// The rows of the current file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SheetPosition {
    /// The length of the sheet in bytes, before it is compressed.
    length: u64,
    /// The CRC-32 of these bytes.
    content: u32,
}

impl SheetPosition {
    fn add(&mut self, bytes: &[u8]) {
        let mut content = Hasher::new_with_initial_len(self.content, self.length);
        content.update(bytes);
        self.content = content.finalize();
        self.length += bytes.len() as u64;
    }
}

/// The name of a sheet: the property `sheet`.
#[derive(Clone, Debug)]
struct SheetName(String);

impl FromStr for SheetName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        /// In the units of UTF-16.
        const LONGEST: usize = 31;
        let forbidden =
            |c: &char| "[]:*?/\\".contains(*c) || c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
        if name.trim().is_empty() {
            return Err("the name of a sheet cannot be empty".to_owned());
        }
        if name.encode_utf16().count() > LONGEST {
            return Err(format!("the name of a sheet has at most {LONGEST} characters"));
        }
        if let Some(c) = name.chars().find(forbidden) {
            return Err(format!("the name of a sheet cannot contain {c:?}"));
        }
        if name.starts_with('\'') || name.ends_with('\'') {
            return Err("the name of a sheet cannot begin or end with an apostrophe".to_owned());
        }
        if name.eq_ignore_ascii_case("history") {
            return Err("Excel has reserved this name of a sheet; choose another one".to_owned());
        }
        Ok(Self(name.to_owned()))
    }
}

/// Rows are compressed when there are more bytes of them, at the latest by the next checkpoint.
const FULL: usize = 1 << 20;

#[item_writer(rewindable = true)]
impl<T: Serialize + Send + 'static> XlsxItemWriter<T> {
    /// Opens the file, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<FramedPosition<SheetPosition>>) -> Result<(), ResourceError> {
        self.rows.clear();
        if self.output.appends() {
            return Err(self.fail("this format cannot be appended to; set `if.exists` to `overwrite`"));
        }
        if self.output.is_compressed() {
            return Err(self.fail("a workbook is compressed already; set `compression` to `none`"));
        }
        let beginning = Beginning::new(&self.sheet.0, columns_of(self.columns.as_ref()));
        let settings = format!("{} {:?}", self.header, self.columns);
        let form = [&*beginning.bytes, beginning.sheet.as_bytes(), settings.as_bytes()].concat();
        self.form = crc32fast::hash(&form);
        self.beginning = Some(beginning);
        self.written = SheetPosition::default();
        let Some(position) = checkpoint else {
            return self.output.open(None);
        };
        let has_content = position.output.length > 0 || position.output.file > 1;
        if position.form != self.form && has_content {
            return Err(self.fail(
                "the properties of the format, such as `columns`, differ from those with which the file was begun; restart with the \
                 earlier ones, or run `abandon` for this execution and `start` the job again",
            ));
        }
        self.written = position.frame;
        self.names.resume(position.columns);
        self.output.open(Some(position.output))
    }

    /// Writes items.
    #[write_items]
    pub fn write(&mut self, items: &[T]) -> Result<(), BatchError> {
        self.write_all(items)
    }

    /// Returns the position after the last item.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<FramedPosition<SheetPosition>, ResourceError> {
        self.flush()?;
        Ok(FramedPosition {
            output: self.output.checkpoint()?,
            frame: self.written,
            columns: self.names.shown_by_record().to_vec(),
            form: self.form,
        })
    }

    /// Completes the workbook, and gives the file its final name.
    #[finish]
    pub fn finish(&mut self) -> Result<(), ResourceError> {
        self.end_file()?;
        self.output.finish()
    }

    /// Closes the file.
    #[close]
    pub fn close(&mut self) {
        self.output.close();
    }
}

impl<T> XlsxItemWriter<T> {
    fn write_all(&mut self, items: &[impl Serialize]) -> Result<(), BatchError> {
        let (mut rest, mut rolled) = (items, false);
        while !rest.is_empty() {
            match self.write_run(rest, &mut rolled) {
                Ok(left) => rest = left,
                // What precedes the item is in files that are complete.
                Err(error) if rolled => return Err(self.output.broken_by(error)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as many of the items as fit in the current file, and returns the others. Sets `rolled` if it has started a new file.
    fn write_run<'i, I: Serialize>(
        &mut self,
        items: &'i [I],
        rolled: &mut bool,
    ) -> Result<&'i [I], BatchError> {
        if self.output.room() == 0 {
            *rolled = true;
            self.end_file()?;
            self.output.roll()?;
            self.written = SheetPosition::default();
        }
        let room = usize::try_from(self.output.room()).unwrap_or(usize::MAX);
        let (run, rest) = items.split_at(items.len().min(room));
        self.select();
        if let Some(first) = run.first() {
            let learned = self.names.learn(first).and_then(|()| self.check_names());
            learned.map_err(|cause| ConfigurationError::new(self.fail(cause)))?;
        }
        let before = self.rows.len();
        if let Err(error) = self.add_rows(run) {
            self.rows.truncate(before);
            return Err(error);
        }
        self.has_unmarked = true;
        if self.rows.len() >= FULL {
            // An error leaves rows behind.
            self.flush().map_err(|error| self.output.broken_by(error))?;
        }
        self.output.write(&[], run.len())?;
        Ok(rest)
    }

    /// Appends the rows of items.
    fn add_rows(&mut self, items: &[impl Serialize]) -> Result<(), BatchError> {
        for (index, item) in (1..).zip(items) {
            let number = self.output.items() + index;
            self.cells.clear();
            let mut sink = CellSink {
                columns: columns_of(self.columns.as_ref()),
                cells: &mut self.cells,
            };
            let passed = self.names.fields_of(item, &mut sink);
            let checked = passed.and_then(|_| self.check_cells());
            checked.map_err(|cause| EncodeError::of_file(self.output.describe(), number, cause))?;
            let row = number + u64::from(self.has_header());
            check_row(row).map_err(|cause| ConfigurationError::new(self.fail(cause)))?;
            if number == 1 {
                self.begin()?;
            }
            self.cells.append_row(row, &self.letters, &mut self.rows);
        }
        Ok(())
    }

    /// Fails unless each cell holds its value, and one of them has one.
    fn check_cells(&mut self) -> Result<(), String> {
        match self.cells.take_error() {
            Some((index, cause)) => Err(match self.names.names().get(index) {
                Some(name) if !name.is_empty() => format!("column `{name}`: {cause}"),
                _ => format!("column {}: {cause}", index + 1),
            }),
            None if self.cells.has_value() => Ok(()),
            None => Err("none of its fields has a value, and readers pass over a row without values; filter such items".to_owned()),
        }
    }

    fn select(&mut self) {
        if let Some(list) = &self.columns {
            self.names.select(list.names.iter().map(String::as_str));
        }
    }

    /// Fails if a sheet cannot have the columns.
    fn check_names(&mut self) -> Result<(), String> {
        let names = self.names.names();
        if names.len() > COLUMNS as usize {
            let count = names.len();
            return Err(format!(
                "the items have {count} fields, and a sheet has at most {COLUMNS} columns; name fewer by `columns`"
            ));
        }
        let letters = (self.letters.len()..names.len()).map(|column| letters(column as u32));
        self.letters.extend(letters);
        if !self.has_header() {
            return Ok(());
        }
        for name in names {
            check_text(name).map_err(|cause| format!("column {name:?}: {cause}"))?;
            if name.trim() != name || name.is_empty() {
                return Err(format!(
                    "column {name:?}: readers of sheets remove blanks around the name of a column, and pass over one without a name; \
                     rename the field, or set `header` to `false`"
                ));
            }
        }
        Ok(())
    }

    /// Tuples have no names.
    fn has_header(&self) -> bool {
        self.header && self.names.names().iter().any(|name| !name.is_empty())
    }

    /// Begins the sheet, with the names of the columns.
    fn begin(&mut self) -> Result<(), ResourceError> {
        let sheet = &self.beginning()?.sheet;
        let mut rows = sheet.clone().into_bytes();
        if self.has_header() {
            append_names(self.names.names(), &self.letters, &mut rows);
        }
        self.rows.extend(rows);
        Ok(())
    }

    /// Appends the rows to the file, as a piece of the compressed sheet.
    fn flush(&mut self) -> Result<(), ResourceError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let length = self.written.length + self.rows.len() as u64;
        check_length(length).map_err(|cause| self.fail(cause))?;
        let mut bytes = match self.output.is_empty() {
            true => self.beginning()?.bytes.clone(),
            false => Vec::new(),
        };
        bytes.extend(deflate(&self.rows).map_err(|error| self.fail(error))?);
        self.output.write(&bytes, 0)?;
        self.written.add(&self.rows);
        self.rows.clear();
        Ok(())
    }

    /// Completes the current file.
    fn end_file(&mut self) -> Result<(), ResourceError> {
        if self.output.items() == 0 {
            self.select();
            self.check_names().map_err(|cause| self.fail(cause))?;
            self.begin()?;
        }
        self.rows.extend_from_slice(SHEET_END.as_bytes());
        self.flush()?;
        let (_, length) = self.output.written_file()?;
        let beginning = self.beginning()?;
        let end = beginning.end(&SheetSize {
            crc: self.written.content,
            packed: length - beginning.bytes.len() as u64,
            unpacked: self.written.length,
        });
        let end = end.map_err(|cause| self.fail(cause))?;
        self.output.write(&end, 0)
    }

    fn beginning(&self) -> Result<&Beginning, ResourceError> {
        self.beginning.as_ref().ok_or_else(|| self.fail("it is not open"))
    }

    fn fail(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> ResourceError {
        ResourceError::new(format!("write `{}`", self.output.describe()), cause)
    }
}

fn columns_of(list: Option<&ColumnList>) -> &[Column] {
    list.map_or(&[], |list| &list.columns)
}

/// Fails if a sheet does not have a row with this number.
fn check_row(number: u64) -> Result<(), String> {
    match number <= u64::from(ROWS) {
        true => Ok(()),
        false => Err(format!(
            "the sheet is full: Excel has {ROWS} rows; set `max.items.per.file` to at most {}",
            ROWS - 1
        )),
    }
}

impl<T: Serialize + Send + 'static> WriteItems<T> for XlsxItemWriter<T> {
    type Position = FramedPosition<SheetPosition>;

    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError> {
        Ok(self.open(checkpoint)?)
    }

    fn write(&mut self, items: &[&T], _: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_all(items)
    }

    fn mark(&mut self) {
        self.has_unmarked = false;
    }

    /// Rows are numbered, and some may be in the file.
    fn undo(&mut self) -> bool {
        !self.has_unmarked
    }

    fn position(&mut self) -> Result<Self::Position, BatchError> {
        Ok(self.checkpoint()?)
    }

    fn finish(&mut self) -> Result<(), BatchError> {
        Ok(self.finish()?)
    }

    fn close(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-VALUE-13
    #[test]
    fn excel_has_the_name_of_the_sheet() {
        let longest = "x".repeat(31);
        for name in [
            "Sheet1",
            "Bestellungen 2024 (März)",
            "a'b & <c> \"d\"",
            "=1+1",
            &longest,
        ] {
            assert_eq!(name.parse::<SheetName>().unwrap().0, name);
        }
        for name in [
            "", " ", "a/b", "a\\b", "a:b", "a?", "*", "[a", "a]", "'a", "a'", "History", "a\nb", "a\0",
        ] {
            assert!(name.parse::<SheetName>().is_err(), "{name:?}");
        }
        assert!("x".repeat(32).parse::<SheetName>().is_err());
        assert!(
            "😀".repeat(16).parse::<SheetName>().is_err(),
            "32 units of UTF-16"
        );
    }

    // Spec: ITEM-VALUE-13
    #[test]
    fn a_sheet_has_a_last_row() {
        assert_eq!(check_row(1_048_576), Ok(()));
        assert_eq!(
            check_row(1_048_577).unwrap_err(),
            "the sheet is full: Excel has 1048576 rows; set `max.items.per.file` to at most 1048575"
        );
    }
}
