//! The rows of Excel sheets.

use std::collections::btree_map::IntoIter;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use batch_items::file::{FileItemReader, Format, Items, OpenFile, Place, Records, Source};
use batch_items::rows::{RowError, fields_of, from_row, lacking};
use batch_items::{Origin, ReadError, RecordError};
use batch_runtime::BatchArtifact;
use batch_runtime::xml::suggest::did_you_mean;
use csv::StringRecord;
use serde::de::DeserializeOwned;

use super::letters::letters;
use super::sheet::{IfNoResult, Sheet};
use super::unpack::Unpack;
use crate::guard::guard;

/// Reads the rows of a sheet of Excel workbooks (XLSX) as items of type `T`.
///
/// It has the properties of [`FileInput`](batch_items::file::FileInput) without `encoding` and `skip.lines`; `max.record.length` does not apply. It also
/// has:
///
/// | property | default | |
/// |---|---|---|
/// | `sheet` | the first one | the name of the sheet, or its number, from 1 |
/// | `header` | `true` | whether the first row has the names of the columns; otherwise the fields get the columns in their order, from `A` |
/// | `skip.rows` | `0` | rows at the beginning of the sheet that are not read |
/// | `trim` | `false` | `true` removes blanks around texts; those around the names of columns are always removed |
/// | `strict` | `true` | `false` accepts values in columns without a name in the header, which are not read, and workbooks that share no column with the first one |
/// | `if.no.result` | `fail` | `empty`: a formula without a stored result is an empty cell. Programs that write workbooks do not compute formulas |
/// | `max.unpacked.size` | `536870912` | in bytes; a workbook that unpacks to more is a [`ResourceError`](batch_items::ResourceError) |
///
/// **The sheet is loaded into memory**, which a stop interrupts. Its rows are those that have values. A row that is not an item is a [`RecordError`], which names
/// the cell. A missing sheet and a missing column are a [`ResourceError`](batch_items::ResourceError). If the items are records, a workbook
/// that shares no column with the first one is a `ResourceError` too: its first row may be a record instead of a header.
///
/// A number is read as it is stored, whatever its format. One with digits that a float cannot hold, or that is too large for a float, is a
/// [`RecordError`]; store it as text. A value in a column without a name is one too, unless `strict` is `false`; blanks do not count. Two
/// cells with the same name, and a value that is not plain text (CDATA, comments), fail the step. A formula is its last result. Dates and times are texts of ISO 8601:
/// `2024-02-29`, `2024-02-29T12:30:00`, `12:30:00`, and `PT36H0M0S` for a cell with the format `[h]:mm:ss`. In
/// workbooks that count days from 1904, the date 1904-01-01 is read as `00:00:00`: both are stored as 0. An error is its text, such
/// as `#N/A`. An empty cell is `None` or an empty `String`; so are all cells of merged ones but the first.
///
/// ```
/// use batch_columnar::XlsxItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     customer: String,
///     amount: u32,
///     /// Such as `2024-02-29`.
///     day: Option<String>,
/// }
///
/// #[item_reader("OrderReader")]
/// type OrderReader = XlsxItemReader<Order>;
/// ```
///
/// ```xml
/// <chunk reader="OrderReader" processor="Orders" writer="OrderWriter">
///   <properties>
///     <property name="resource" value="in/orders-*.xlsx" target="reader"/>
///     <property name="sheet" value="Orders" target="reader"/>
///     <property name="skip.rows" value="2" target="reader"/>
///   </properties>
/// </chunk>
/// ```
pub type XlsxItemReader<T> = FileItemReader<XlsxFormat, T>;

/// The format of a reader of Excel sheets.
#[derive(BatchArtifact)]
pub struct XlsxFormat {
    /// The name of the sheet, or its number, from 1. The default is the first one.
    #[batch_property(name = "sheet")]
    sheet: String,
    /// Whether the first row has the names of the columns; otherwise the fields get the columns in their order, from `A`.
    #[batch_property(name = "header", value = "true")]
    header: bool,
    /// Rows at the beginning of the sheet that are not read.
    #[batch_property(name = "skip.rows", value = "0")]
    skip_rows: u64,
    /// `true` removes blanks around texts; those around the names of columns are always removed.
    #[batch_property(name = "trim", value = "false")]
    trim: bool,
    /// `false` accepts values in columns without a name in the header, which are not read, and workbooks that share no column with the
    /// first one.
    #[batch_property(name = "strict", value = "true")]
    strict: bool,
    /// `empty`: a formula without a stored result is an empty cell. Programs that write workbooks do not compute formulas.
    #[batch_property(name = "if.no.result", value = "fail")]
    if_no_result: IfNoResult,
    #[batch_artifact]
    unpack: Unpack,
}

impl Format for XlsxFormat {
    type Records = SheetRows;

    fn start(&self, file: OpenFile<'_>) -> Result<SheetRows, ReadError> {
        let source = file.binary_source()?;
        let (file, place) = (source.file()?, file.resume_at());
        let sheet = match guard(|| Sheet::read(file, &self.sheet, &self.unpack, self.if_no_result)) {
            Ok(sheet) => sheet,
            // The step asks for no row any more.
            Err(_) if self.unpack.is_stopping() => return Ok(SheetRows::stopped(place, source)),
            Err(cause) => return Err(source.fail(cause).into()),
        };
        let mut rows = sheet.rows;
        rows = rows.split_off(&self.skip_rows.saturating_add(1));
        let columns = if self.header {
            rows.pop_first()
                .map_or_else(|| Ok(Columns::default()), |(_, header)| named(header, &source))
        } else {
            Ok(lettered(&rows))
        };
        let columns = columns.map_err(|cause| source.fail(format!("sheet `{}`: {cause}", sheet.name)))?;
        if let Some(place) = place {
            rows = rows.split_off(&place.line);
        }
        Ok(SheetRows {
            next: first(place),
            stopped: false,
            rows: rows.into_iter(),
            sheet: sheet.name,
            columns,
            inexact: sheet.inexact,
            trim: self.trim,
            strict: self.strict,
            values: StringRecord::new(),
            others: Vec::new(),
            source,
        })
    }

    fn other_lines(&self) -> Option<u64> {
        None
    }
}

/// Returns the place of the next row.
fn first(resume_at: Option<Place>) -> Place {
    Place {
        line: resume_at.map_or(1, |place| place.line),
        record: resume_at.map_or(0, |place| place.record),
        ..Place::default()
    }
}

/// The columns that are fields.
#[derive(Default)]
struct Columns {
    /// The index of each in the sheet.
    indexes: Vec<u32>,
    /// Their names, and the names of the added fields; `None` without a header.
    names: Option<StringRecord>,
}

/// Returns the columns with names.
fn named(header: BTreeMap<u32, String>, source: &Source) -> Result<Columns, String> {
    let (mut indexes, mut names) = (Vec::new(), StringRecord::new());
    for (index, name) in header {
        let name = name.trim();
        if name.is_empty() {
            continue;
        }
        if names.iter().any(|other| other == name) {
            return Err(format!("its header has two columns `{name}`"));
        }
        indexes.push(index);
        names.push_field(name);
    }
    for name in source.added_names() {
        if names.iter().any(|column| column == name) {
            return Err(format!(
                "it has a column `{name}` already; choose another name for the added field"
            ));
        }
        names.push_field(name);
    }
    Ok(Columns {
        indexes,
        names: Some(names),
    })
}

/// Returns all columns, from the first to the last one that has a value.
fn lettered(rows: &BTreeMap<u64, BTreeMap<u32, String>>) -> Columns {
    let last = rows.values().filter_map(|row| row.keys().next_back()).max();
    Columns {
        indexes: last.map_or_else(Vec::new, |last| (0..=*last).collect()),
        names: None,
    }
}

/// The rows of a sheet.
pub struct SheetRows {
    rows: IntoIter<u64, BTreeMap<u32, String>>,
    sheet: String,
    columns: Columns,
    /// The cells whose numbers a float does not hold.
    inexact: BTreeSet<(u64, u32)>,
    trim: bool,
    strict: bool,
    /// The current row.
    values: StringRecord,
    /// The values of the current row in other columns.
    others: Vec<(u32, String)>,
    /// After the current row.
    next: Place,
    /// True if a stop has interrupted the load.
    stopped: bool,
    source: Source,
}

impl SheetRows {
    fn stopped(resume_at: Option<Place>, source: Source) -> Self {
        Self {
            rows: BTreeMap::new().into_iter(),
            sheet: String::new(),
            columns: Columns::default(),
            inexact: BTreeSet::new(),
            trim: false,
            strict: true,
            values: StringRecord::new(),
            others: Vec::new(),
            next: first(resume_at),
            stopped: true,
            source,
        }
    }

    /// Returns the values of the current row, with tabs between them.
    fn raw(&self) -> String {
        let columns = self.columns.indexes.iter().copied().zip(&self.values);
        let others = self.others.iter().map(|(index, value)| (*index, &**value));
        let mut values: Vec<(u32, &str)> = columns.chain(others).collect();
        values.sort_by_key(|(index, _)| *index);
        let values: Vec<&str> = values.iter().map(|(_, value)| *value).collect();
        values.join("\t")
    }

    /// Returns the error for the current row, which is not an item.
    fn bad(&self, error: RowError) -> ReadError {
        let names = self.columns.names.as_ref();
        if let (Some(missing), Some(names)) = (error.missing, names) {
            return self.no_column(missing, names);
        }
        let mut field = error.field(names, &self.values);
        let index = field
            .as_ref()
            .and_then(|field| self.columns.indexes.get(field.number - 1).copied());
        if let (Some(field), Some(index)) = (&mut field, index) {
            field.number = index as usize + 1;
        }
        self.record_error(index, error).with_field(field).into()
    }

    /// Returns the error for a sheet whose header lacks a column.
    fn no_column(&self, missing: &str, names: &StringRecord) -> ReadError {
        let columns: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let hint = did_you_mean(missing, names.iter());
        let (sheet, columns) = (&self.sheet, columns.join(", "));
        let cause = format!("sheet `{sheet}` has no column `{missing}`, but {columns}{hint}");
        self.source.fail(cause).into()
    }

    /// Returns an error of the current row, at the cell in a column.
    fn record_error(
        &self,
        column: Option<u32>,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> RecordError {
        let row = self.next.line - 1;
        let cell = column.map(|column| format!("{}{row} of sheet `{}`", letters(column), self.sheet));
        RecordError::at(self.origin(), cause).with_cell(cell)
    }
}

impl Records for SheetRows {
    fn advance(&mut self) -> Result<bool, ReadError> {
        if self.stopped {
            return Err(self
                .source
                .fail("the step was stopped while it was loaded")
                .into());
        }
        let Some((row, mut cells)) = self.rows.next() else {
            return Ok(false);
        };
        self.next.line = row + 1;
        self.next.record += 1;
        self.values.clear();
        for index in &self.columns.indexes {
            let text = cells.remove(index).unwrap_or_default();
            self.values
                .push_field(if self.trim { text.trim() } else { &text });
        }
        self.others = cells
            .into_iter()
            .filter(|(_, text)| !text.trim().is_empty())
            .collect();
        let raw = if self.source.adds_raw() {
            self.raw()
        } else {
            String::new()
        };
        self.source
            .add_to_row(&mut self.values, row, self.next.record, &raw);
        Ok(true)
    }

    fn place(&self) -> Place {
        self.next
    }

    fn origin(&self) -> Origin<'_> {
        Origin::new(self.source.name(), self.next.line - 1, self.raw())
    }
}

impl<T: DeserializeOwned> Items<T> for SheetRows {
    fn check(&self) -> Result<(), ReadError> {
        let Some(names) = self.columns.names.as_ref().filter(|_| self.strict) else {
            return Ok(());
        };
        let columns = self.columns.indexes.len();
        let lacking = lacking::<T>(names.iter().take(columns), names.iter().skip(columns));
        lacking
            .first()
            .map_or(Ok(()), |field| Err(self.no_column(field, names)))
    }

    /// If the fields of the items are not known, only the other files show whether the first row is a header.
    fn header(&self) -> Vec<String> {
        let is_unknown = self.strict && fields_of::<T>().is_none();
        let names = self.columns.names.iter().filter(|_| is_unknown);
        let columns = names.flat_map(|names| names.iter().take(self.columns.indexes.len()));
        columns.map(str::to_owned).collect()
    }

    fn item(&mut self) -> Result<T, ReadError> {
        let row = self.next.line - 1;
        let is_inexact = |column: &&u32| self.inexact.contains(&(row, **column));
        if let Some(column) = self.columns.indexes.iter().find(is_inexact) {
            let cause = "a number of a workbook is a float, which does not hold this one; store it as text";
            return Err(self.record_error(Some(*column), cause).into());
        }
        let item = from_row(self.columns.names.as_ref(), &self.values).map_err(|error| self.bad(error))?;
        match self.others.first() {
            Some((column, value)) if self.strict => {
                let cause = format!(
                    "the column has no name in the header, but the value {value:?}; name it, or set `strict` to `false`"
                );
                Err(self.record_error(Some(*column), cause).into())
            }
            _ => Ok(item),
        }
    }
}
