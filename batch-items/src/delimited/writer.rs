//! The writer of delimited files.

use batch_runtime::prelude::*;
use serde::Serialize;

use super::form::RowForm;
use super::format::{DelimitedFormat, QuoteMode};
use crate::file::{Encode, FileItemWriter, TextOutput};
use crate::rows::{FieldSink, FieldValue, Names};

/// Writes items as rows of delimited files, such as CSV, exactly once.
///
/// The properties are those of [`FileOutput`](crate::file::FileOutput), [`TextOutput`](crate::file::TextOutput) and
/// [`DelimitedFormat`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `header` | `true` | whether the first line has the names of the fields; a tuple has none |
/// | `columns` | none | the names in the header, separated by commas, also of a file without items; by default those of the struct's fields |
/// | `quotes` | `necessary` | which fields are quoted: `necessary`, `always`, `text` (all but numbers) or `never` |
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
    #[batch_property(name = "header", value = "true")]
    header: bool,
    #[batch_property(name = "columns")]
    columns: Vec<String>,
    #[batch_property(name = "quotes", value = "necessary")]
    quotes: QuoteMode,
    names: Names,
}

impl RowEncoder {
    fn write_header(&self, names: &[String], out: &mut Vec<u8>) {
        let form = RowForm::new(&self.format, self.quotes, self.text.line_end);
        for (index, name) in names.iter().enumerate() {
            form.append(index, FieldValue::Text(name), out);
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

/// Appends fields to the text of a row.
struct RowOutput<'o> {
    form: &'o RowForm,
    out: &'o mut Vec<u8>,
}

impl FieldSink for RowOutput<'_> {
    #[inline]
    fn field(&mut self, index: usize, value: FieldValue<'_>) {
        self.form.append(index, value, self.out);
    }
}

impl<T: Serialize> Encode<T> for RowEncoder {
    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        if let Some(header) = header {
            self.text.append(&header, out)?;
        }
        if !self.header || self.columns.is_empty() {
            return Ok(());
        }
        let start = out.len();
        self.write_header(&self.columns, out);
        self.text.convert(start, out)
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
            let mut row = RowOutput { form: &form, out };
            let fields = self
                .names
                .fields_of(item, &mut row)
                .map_err(|cause| (index, cause))?;
            form.end(fields, out);
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
