//! Lines of plain text.

use std::fmt::Display;
use std::str::FromStr;

use batch_runtime::BatchArtifact;

use super::records::{LineFormat, LineRecords};
use crate::error::{Origin, ReadError};
use crate::file::{
    Encode, FileItemReader, FileItemWriter, Format, Items, OpenFile, Place, Records, TextOutput,
};

/// Reads each line as an item of type `T`, which is a `String` or another type with `FromStr`.
///
/// It has the properties of [`FileInput`](crate::file::FileInput), and:
///
/// | property | default | |
/// |---|---|---|
/// | `comment` | none | lines that begin with this character are not read |
/// | `blank.lines` | `skip` | `read`: an empty line is an item |
///
/// ```
/// use batch_items::LineItemReader;
/// use batch_runtime::prelude::*;
///
/// #[item_reader("NameReader")]
/// type NameReader = LineItemReader<String>;
/// ```
pub type LineItemReader<T> = FileItemReader<TextLines, T>;

/// Writes each item as a line, as its `Display` shows it, exactly once. A text with a line end is an
/// [`EncodeError`](crate::EncodeError).
///
/// It has the properties of [`FileOutput`](crate::file::FileOutput) and [`TextOutput`].
///
/// ```
/// use batch_items::LineItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[item_writer("NameWriter")]
/// type NameWriter = LineItemWriter<String>;
/// ```
pub type LineItemWriter<T, F = ()> = FileItemWriter<LineOutput, T, F>;

/// The format of a reader of lines.
#[derive(BatchArtifact)]
pub struct TextLines {
    #[batch_artifact]
    lines: LineFormat,
}

impl Format for TextLines {
    type Records = LineRecords;

    fn start(&self, file: OpenFile<'_>) -> Result<LineRecords, ReadError> {
        self.lines.start(&file)
    }

    fn other_lines(&self) -> Option<u64> {
        Some(0)
    }
}

impl Records for LineRecords {
    fn advance(&mut self) -> Result<bool, ReadError> {
        self.advance()
    }

    fn place(&self) -> Place {
        self.place()
    }

    fn origin(&self) -> Origin<'_> {
        self.origin()
    }
}

impl<T: FromStr> Items<T> for LineRecords
where
    T::Err: Display,
{
    fn item(&mut self) -> Result<T, ReadError> {
        let item = self.text().parse();
        item.map_err(|error: T::Err| self.bad(error.to_string(), None))
    }
}

/// The format of a writer of lines.
#[derive(BatchArtifact)]
pub struct LineOutput {
    #[batch_artifact]
    text: TextOutput,
}

impl<T: Display> Encode<T> for LineOutput {
    fn form(&self) -> String {
        self.text.form()
    }

    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        header.map_or(Ok(()), |header| self.text.append(&header, out))
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
            let line = item.to_string();
            if line.contains(['\n', '\r']) {
                return Err((index, "the text contains a line end".to_owned()));
            }
            let line = line + self.text.line_end.as_str();
            self.text.append(&line, out).map_err(|cause| (index, cause))?;
        }
        Ok(())
    }

    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        footer.map_or(Ok(()), |footer| self.text.append(&footer, out))
    }
}
