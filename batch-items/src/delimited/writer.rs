//! The writer of delimited files.

use std::ops::Range;

use batch_runtime::prelude::*;
use csv::StringRecord;
use serde::Serialize;

use super::form::RowForm;
use super::format::{DelimitedFormat, QuoteMode, RowFormat};
use super::split::{Fields, RowEnd};
use crate::file::{Encode, Existing, FileItemWriter, TextOutput};
use crate::rows::{FieldSink, FieldValue, Names};

/// Writes items as rows of delimited files, such as CSV, exactly once.
///
/// It has the properties of [`FileOutput`](crate::file::FileOutput), [`TextOutput`](crate::file::TextOutput) and
/// [`DelimitedFormat`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `header` | `true` | whether the first line has the names of the fields; a tuple has none. With `if.exists` = `append`, the existing file has to have the same |
/// | `columns` | all | the fields that are written, by name and in this order, separated by commas; also the header of a file without items. `note?` is a field that items may lack |
/// | `quotes` | `necessary` | which fields are quoted: `necessary`, `always`, `text` (all but numbers) or `never` |
///
/// Without `columns`, the first item sets the fields. Later items may have them in another order or lack some, which are empty;
/// a further field is an [`EncodeError`](crate::EncodeError). Tuples have their fields in the order of `columns`.
///
/// A [`FileFrame`](crate::file::FileFrame) adds a header and a footer of one's own.
///
/// ```
/// use batch_items::DelimitedItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Delay {
///     origin: String,
///     minutes: i64,
/// }
///
/// #[item_writer("DelayWriter")]
/// type DelayWriter = DelimitedItemWriter<Delay>;
/// ```
///
/// ```xml
/// <chunk reader="FlightReader" processor="Delays" writer="DelayWriter">
///   <properties>
///     <property name="output" value="out/delays.csv" target="writer"/>
///   </properties>
/// </chunk>
/// ```
pub type DelimitedItemWriter<T, F = ()> = FileItemWriter<RowEncoder, T, F>;

/// Converts items to rows.
#[derive(BatchArtifact)]
pub struct RowEncoder {
    #[batch_artifact]
    format: DelimitedFormat,
    #[batch_artifact]
    text: TextOutput,
    /// Whether the first line has the names of the fields; a tuple has none. With `if.exists` = `append`, the existing file has to have the
    /// same.
    #[batch_property(name = "header", value = "true")]
    header: bool,
    /// The fields that are written, by name and in this order, separated by commas; also the header of a file without items. `note?` is a
    /// field that items may lack.
    #[batch_property(name = "columns")]
    columns: Vec<String>,
    /// Which fields are quoted: `necessary`, `always`, `text` (all but numbers) or `never`.
    #[batch_property(name = "quotes", value = "necessary")]
    quotes: QuoteMode,
    names: Names,
    /// The beginning of the file that rows are appended to, until its header is compared.
    followed: Option<Vec<u8>>,
}

impl RowEncoder {
    /// Compares the header of an existing file with the names of the columns.
    fn check_header(&mut self) -> Result<(), String> {
        let is_named = self.names.names().iter().any(|name| !name.is_empty());
        let Some(existing) = self.followed.take().filter(|_| is_named) else {
            return Ok(());
        };
        if self
            .first_row(&existing)
            .is_some_and(|row| row.iter().eq(self.names.names()))
        {
            return Ok(());
        }
        let mut header = Vec::new();
        self.write_header(self.names.names(), &mut header);
        let line = existing.split(|byte| matches!(byte, b'\n' | b'\r')).next();
        Err(format!(
            "the existing file begins with `{}`, and the header of the items would be `{}`; set `columns` to the order of the file, or `header` \
             to `false` if it has none",
            String::from_utf8_lossy(line.unwrap_or_default()),
            String::from_utf8_lossy(&header).trim_end()
        ))
    }

    /// Returns the first row of a file; another program may have quoted other names.
    fn first_row(&self, content: &[u8]) -> Option<StringRecord> {
        let content = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content);
        let characters = self.format.characters(&RowFormat::default());
        let (mut fields, mut row) = (Fields::default(), StringRecord::new());
        let RowEnd::At(end, _) = characters.split(content, true, &mut fields) else {
            return None;
        };
        let read = fields.read(&content[..end], &characters, self.text.encoding(), &mut row);
        read.ok().map(|()| row)
    }

    fn write_header(&self, names: &[String], out: &mut Vec<u8>) {
        let form = RowForm::new(&self.format, self.quotes, self.text.line_end);
        match names {
            [name] => form.append_only_name(name, out),
            _ => {
                for (index, name) in names.iter().enumerate() {
                    form.append(index, FieldValue::Text(name), out);
                }
            }
        }
        form.end(names.len(), out);
    }

    /// Inserts the names of the first item before it. A tuple has none.
    fn insert_header(&self, at: usize, out: &mut Vec<u8>) {
        if self.names.names().iter().any(|name| !name.is_empty()) {
            let first = out.split_off(at);
            self.write_header(self.names.names(), out);
            out.extend(first);
        }
    }
}

/// Appends fields to the text of a row, as long as they come in the order of the columns.
struct RowOutput<'o> {
    form: &'o RowForm,
    out: &'o mut Vec<u8>,
    next: usize,
    is_in_order: bool,
    /// A field that needs quotes, which the format does not have.
    ambiguous: Option<usize>,
}

impl FieldSink for RowOutput<'_> {
    #[inline]
    fn field(&mut self, index: usize, value: FieldValue<'_>) {
        if index == self.next {
            if !self.form.append(index, value, self.out) {
                self.ambiguous = Some(index);
            }
        } else {
            self.is_in_order = false;
        }
        self.next += 1;
    }
}

/// Keeps the texts of the fields of a row that come in another order.
struct RowTexts<'o> {
    form: &'o RowForm,
    bytes: Vec<u8>,
    /// The bytes of each column; `None` for one that the item lacks.
    columns: Vec<Option<Range<usize>>>,
    ambiguous: Option<usize>,
}

impl FieldSink for RowTexts<'_> {
    fn field(&mut self, index: usize, value: FieldValue<'_>) {
        let start = self.bytes.len();
        if !self.form.append_value(index == 0, value, &mut self.bytes) {
            self.ambiguous = Some(index);
        }
        self.columns[index] = Some(start..self.bytes.len());
    }
}

/// Appends an item as a row.
fn append_row<T: Serialize>(
    names: &mut Names,
    form: &RowForm,
    item: &T,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let before = out.len();
    let mut ambiguous;
    let is_complete = {
        let mut row = RowOutput {
            form,
            out: &mut *out,
            next: 0,
            is_in_order: true,
            ambiguous: None,
        };
        names.fields_of(item, &mut row)?;
        ambiguous = row.ambiguous;
        row.is_in_order && row.next == names.names().len()
    };
    if !is_complete {
        out.truncate(before);
        let mut row = RowTexts {
            form,
            bytes: Vec::new(),
            columns: vec![None; names.names().len()],
            ambiguous: None,
        };
        names.fields_of(item, &mut row)?;
        ambiguous = row.ambiguous;
        for (index, column) in row.columns.into_iter().enumerate() {
            match column {
                Some(range) => form.append_raw(index, &row.bytes[range], out),
                None => {
                    form.append(index, FieldValue::Null, out);
                }
            }
        }
    }
    if let Some(index) = ambiguous {
        return Err(format!(
            "field `{}` contains the delimiter, a quote or a line end, and the format has no quotes to write it; set `quotes` to `necessary`",
            names.names().get(index).map_or("", String::as_str)
        ));
    }
    match form.end(names.names().len(), out) {
        true => Ok(()),
        false => {
            Err("its only field is empty, and an empty line is no row without quotes; set `quote`".to_owned())
        }
    }
}

impl<T: Serialize> Encode<T> for RowEncoder {
    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        if let Some(header) = header {
            self.text.append(&header, out)?;
        }
        self.names.select(self.columns.iter().map(String::as_str));
        if !self.header || self.columns.is_empty() {
            return Ok(());
        }
        let start = out.len();
        self.write_header(self.names.names(), out);
        self.text.convert(start, out)
    }

    fn prepare(&mut self, first: &T) -> Result<(), String> {
        self.names.select(self.columns.iter().map(String::as_str));
        self.names.learn(first)?;
        self.format.check(None)?;
        self.check_header()
    }

    fn follow(&mut self, existing: Existing, out: &mut Vec<u8>) {
        if !existing.is_ended {
            out.extend_from_slice(self.text.line_end.as_str().as_bytes());
        }
        self.followed = existing.beginning.filter(|_| self.header);
    }

    fn form(&self) -> String {
        let DelimitedFormat {
            delimiter,
            quote,
            escape,
        } = &self.format;
        let dialect = (delimiter.0, quote.0, escape.map(|escape| escape.0), self.quotes);
        format!(
            "{dialect:?} {} {:?} {}",
            self.header,
            self.columns,
            self.text.form()
        )
    }

    fn columns(&self) -> Vec<String> {
        self.names.shown_by_record().to_vec()
    }

    fn resume(&mut self, columns: Vec<String>) {
        self.names.resume(columns);
    }

    fn items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a T>,
        first: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), (usize, String)>
    where
        T: 'a,
    {
        let start = out.len();
        let mut header = first && self.header && self.columns.is_empty();
        let form = RowForm::new(&self.format, self.quotes, self.text.line_end);
        let mut last = 0;
        for (index, item) in items.enumerate() {
            last = index;
            let before = out.len();
            append_row(&mut self.names, &form, item, out).map_err(|cause| (index, cause))?;
            if std::mem::take(&mut header) {
                self.insert_header(before, out);
            }
        }
        self.text.convert(start, out).map_err(|cause| (last, cause))
    }

    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        footer.map_or(Ok(()), |footer| self.text.append(&footer, out))
    }
}
