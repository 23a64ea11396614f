//! The writer of delimited files.

use batch_runtime::prelude::*;
use csv::Terminator;
use serde::Serialize;

use super::format::{DelimitedFormat, QuoteMode};
use crate::file::{Encode, FileItemWriter, LineEnd, TextOutput};
use crate::rows::Rows;

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
    values: Rows,
    scratch: String,
}

impl RowEncoder {
    fn builder(&self) -> csv::WriterBuilder {
        let mut builder = self.format.writer(self.quotes);
        builder.terminator(match self.text.line_end {
            LineEnd::Lf => Terminator::Any(b'\n'),
            LineEnd::Crlf => Terminator::CRLF,
        });
        builder
    }
}

impl RowEncoder {
    fn write_header(&self, names: &[String], out: &mut Vec<u8>) -> Result<(), String> {
        let mut row = self.builder().from_writer(&mut *out);
        let written = row.write_record(names).map_err(|error| error.to_string());
        written.and_then(|()| row.flush().map_err(|error| error.to_string()))
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
        self.write_header(&self.columns, out)?;
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
        let (mut values, mut last) = (std::mem::take(&mut self.values), 0);
        let mut rows = None;
        for (index, item) in items.enumerate() {
            let fail = |cause: String| (index, cause);
            last = index;
            values.clear();
            values.push(item).map_err(fail)?;
            // A tuple has no names.
            if std::mem::take(&mut header) && values.names().iter().any(|name| !name.is_empty()) {
                self.write_header(values.names(), out).map_err(fail)?;
            }
            let rows = rows.get_or_insert_with(|| {
                self.builder()
                    .buffer_capacity(1 << 14)
                    .from_writer(Vec::with_capacity(1 << 14))
            });
            for field in 0..values.names().len() {
                let text = values.shown(0, field, &mut self.scratch);
                rows.write_field(text).map_err(|error| fail(error.to_string()))?;
            }
            rows.write_record(None::<&[u8]>)
                .map_err(|error| fail(error.to_string()))?;
        }
        self.values = values;
        if let Some(rows) = rows {
            let bytes = rows.into_inner().map_err(|error| (last, error.to_string()))?;
            out.extend_from_slice(&bytes);
        }
        self.text.convert(start, out).map_err(|cause| (last, cause))
    }

    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        footer.map_or(Ok(()), |footer| self.text.append(&footer, out))
    }
}
