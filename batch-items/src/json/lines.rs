//! Files with a JSON value on each line.

use batch_runtime::BatchArtifact;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{append_json, parse};
use crate::error::{Origin, ReadError};
use crate::file::{Encode, FileItemReader, FileItemWriter, Format, Items, OpenFile, Place, Records};
use crate::lines::{LineFormat, LineRecords};

/// Reads the JSON value on each line as an item of type `T`: JSON Lines, also called NDJSON.
///
/// It has the properties of [`FileInput`](crate::file::FileInput), and `comment` of
/// [`LineItemReader`](crate::LineItemReader).
///
/// A key without a field in `T` is ignored. So if a key is misspelt, an `Option` is `None`: similar names are not searched, because that
/// would cost time for each record. With `#[serde(deny_unknown_fields)]`, an unknown key is a [`RecordError`](crate::RecordError).
///
/// ```
/// use batch_items::JsonLinesItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     id: u64,
///     lines: Vec<String>,
/// }
///
/// #[item_reader("OrderReader")]
/// type OrderReader = JsonLinesItemReader<Order>;
/// ```
pub type JsonLinesItemReader<T> = FileItemReader<JsonLines, T>;

/// Writes each item as a line of JSON, exactly once.
///
/// It has the properties of [`FileOutput`](crate::file::FileOutput).
///
/// ```
/// use batch_items::JsonLinesItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Order {
///     id: u64,
/// }
///
/// #[item_writer("OrderWriter")]
/// type OrderWriter = JsonLinesItemWriter<Order>;
/// ```
pub type JsonLinesItemWriter<T, F = ()> = FileItemWriter<JsonLinesOutput, T, F>;

/// The format of a reader of JSON Lines.
#[derive(BatchArtifact)]
pub struct JsonLines {
    #[batch_artifact]
    lines: LineFormat,
}

impl Format for JsonLines {
    type Records = JsonLineRecords;

    fn start(&self, file: OpenFile<'_>) -> Result<JsonLineRecords, ReadError> {
        Ok(JsonLineRecords(self.lines.start(&file)?))
    }

    fn other_lines(&self) -> Option<u64> {
        Some(0)
    }
}

/// The lines of a file.
pub struct JsonLineRecords(LineRecords);

impl Records for JsonLineRecords {
    fn advance(&mut self) -> Result<bool, ReadError> {
        self.0.advance()
    }

    fn place(&self) -> Place {
        self.0.place()
    }

    fn origin(&self) -> Origin<'_> {
        self.0.origin()
    }
}

impl<T: DeserializeOwned> Items<T> for JsonLineRecords {
    fn item(&mut self) -> Result<T, ReadError> {
        let lines = &self.0;
        parse(lines.text(), &lines.added())
            .map_err(|error| lines.bad_at(error.column(), without_place(&error)))
    }
}

/// Returns the message without ` at line 1 column 2`, which counts from the beginning of the value.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// The format of a writer of JSON Lines.
#[derive(BatchArtifact)]
pub struct JsonLinesOutput;

impl<T: Serialize> Encode<T> for JsonLinesOutput {
    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend(header.unwrap_or_default().bytes());
        Ok(())
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
            append_json(item, out).map_err(|error| (index, error.to_string()))?;
            out.push(b'\n');
        }
        Ok(())
    }

    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend(footer.unwrap_or_default().bytes());
        Ok(())
    }
}
