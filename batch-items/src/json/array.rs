//! Files with an array of JSON values.

use batch_runtime::BatchArtifact;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lines::without_place;
use super::{append_json, parse};
use crate::error::{Origin, ReadError, RecordError};
use crate::file::{
    Bytes, Encode, FileItemReader, FileItemWriter, Format, Items, OpenFile, Part, Place, Records, Source,
    decode,
};

/// Reads the elements of a JSON array as items of type `T`. The file is not loaded into memory: an element is read when it is
/// needed.
///
/// It has the properties of [`FileInput`](crate::file::FileInput).
///
/// A key without a field in `T` is ignored, as by [`JsonLinesItemReader`](crate::JsonLinesItemReader).
///
/// ```
/// use batch_items::JsonArrayItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     id: u64,
/// }
///
/// #[item_reader("OrderReader")]
/// type OrderReader = JsonArrayItemReader<Order>;
/// ```
pub type JsonArrayItemReader<T> = FileItemReader<JsonArray, T>;

/// Writes the items as a JSON array, exactly once, one item on each line.
///
/// It has the properties of [`FileOutput`](crate::file::FileOutput), but `if.exists` = `append` is not possible.
///
/// ```
/// use batch_items::JsonArrayItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Order {
///     id: u64,
/// }
///
/// #[item_writer("OrderWriter")]
/// type OrderWriter = JsonArrayItemWriter<Order>;
/// ```
pub type JsonArrayItemWriter<T, F = ()> = FileItemWriter<JsonArrayOutput, T, F>;

/// The format of a reader of a JSON array.
#[derive(BatchArtifact)]
pub struct JsonArray;

impl Format for JsonArray {
    type Records = Elements;

    fn start(&self, file: OpenFile<'_>) -> Result<Elements, ReadError> {
        let source = file.source();
        let (input, record) = file.bytes(&source)?;
        let mut elements = Elements {
            start: input.place(record),
            input,
            record,
            raw: Part::new(source.max_record_length()),
            text: String::new(),
            ended: false,
            source,
        };
        if file.resume_at.is_none() {
            elements.begin()?;
        }
        Ok(elements)
    }

    fn other_lines(&self) -> Option<u64> {
        None
    }
}

/// The elements of an array.
pub struct Elements {
    input: Bytes,
    record: u64,
    /// The place of the current element.
    start: Place,
    raw: Part,
    text: String,
    ended: bool,
    source: Source,
}

impl Elements {
    /// Reads the `[`.
    fn begin(&mut self) -> Result<(), ReadError> {
        match self.next_byte()? {
            Some(b'[') => Ok(()),
            _ => Err(self.broken("expected `[`, the beginning of an array")),
        }
    }

    fn broken(&self, cause: &str) -> ReadError {
        self.source
            .fail(format!("line {}: {cause}", self.input.line))
            .into()
    }

    /// Returns the next byte that is not blank, and consumes it.
    fn next_byte(&mut self) -> Result<Option<u8>, ReadError> {
        let byte = self.input.skip_blanks();
        let byte = byte.map_err(|error| self.source.fail(error))?;
        if byte.is_some() {
            self.input.consume(1);
        }
        Ok(byte)
    }

    /// Moves to the beginning of the next element; `false` at the end of the array.
    fn find_next(&mut self) -> Result<bool, ReadError> {
        let first = self.record == 0;
        if first {
            let byte = self
                .input
                .skip_blanks()
                .map_err(|error| self.source.fail(error))?;
            match byte {
                Some(b']') => drop(self.input.consume(1)),
                Some(_) => return Ok(true),
                None => return Err(self.broken("the array has no end")),
            }
        } else {
            match self.next_byte()? {
                Some(b',') => {
                    let byte = self
                        .input
                        .skip_blanks()
                        .map_err(|error| self.source.fail(error))?;
                    return match byte {
                        Some(b']' | b',') | None => Err(self.broken("expected an element after `,`")),
                        Some(_) => Ok(true),
                    };
                }
                Some(b']') => {}
                Some(_) => return Err(self.broken("expected `,` or `]` after an element")),
                None => return Err(self.broken("the array has no end")),
            }
        }
        self.ended = true;
        match self.next_byte()? {
            None => Ok(false),
            Some(_) => Err(self.broken("expected nothing after the array")),
        }
    }

    fn bad(&self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> RecordError {
        RecordError::new(self.source.name(), self.start.line, cause)
            .with_raw(self.raw.bytes(), self.source.encoding())
    }
}

impl Records for Elements {
    fn advance(&mut self) -> Result<bool, ReadError> {
        if self.ended || !self.find_next()? {
            return Ok(false);
        }
        self.start = self.input.place(self.record);
        self.raw.clear();
        let (mut scan, raw) = (Scan::default(), &mut self.raw);
        let read = self
            .input
            .read_until(|bytes| scan.end_in(bytes), |bytes| raw.push(bytes));
        self.record += 1;
        if !read.map_err(|error| self.source.fail(error))? {
            return Err(self.broken("the file ends within an element"));
        }
        if self.raw.is_too_long() {
            let limit = self.source.max_record_length();
            let cause = format!("the element is longer than `max.record.length`, {limit} bytes");
            return Err(self.bad(cause).into());
        }
        self.text.clear();
        decode(self.source.encoding(), self.raw.bytes(), &mut self.text).map_err(|cause| self.bad(cause))?;
        Ok(true)
    }

    fn place(&self) -> Place {
        self.input.place(self.record)
    }

    fn origin(&self) -> Origin<'_> {
        self.source.origin(self.start.line, self.raw.bytes())
    }
}

impl<T: DeserializeOwned> Items<T> for Elements {
    fn item(&mut self) -> Result<T, ReadError> {
        let added = self.source.added(self.start.line, self.record, &self.text);
        parse(&self.text, &added).map_err(|error| {
            let line = self.start.line + error.line().saturating_sub(1) as u64;
            RecordError::new(self.source.name(), line, without_place(&error))
                .with_raw(self.raw.bytes(), self.source.encoding())
                .into()
        })
    }
}

/// Finds the end of a value.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// True within a number or word, which the byte after it ends.
    in_word: bool,
}

impl Scan {
    /// Returns the position after the value, if it ends in `bytes`.
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return Some(index + 1);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' if !self.in_word => self.in_string = true,
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(index + 1);
                    }
                }
                b',' | b']' | b'}' if self.depth == 0 => return Some(index),
                byte if self.depth == 0 && byte.is_ascii_whitespace() => return Some(index),
                _ if self.depth == 0 => self.in_word = true,
                _ => {}
            }
        }
        None
    }
}

/// The format of a writer of a JSON array.
#[derive(BatchArtifact)]
pub struct JsonArrayOutput;

impl<T: Serialize> Encode<T> for JsonArrayOutput {
    const APPENDABLE: bool = false;

    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend(header.unwrap_or_default().bytes());
        out.push(b'[');
        Ok(())
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
        for (index, item) in items.enumerate() {
            out.extend_from_slice(if first && index == 0 { b"\n" } else { b",\n" });
            append_json(item, out).map_err(|error| (index, error.to_string()))?;
        }
        Ok(())
    }

    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend_from_slice(b"\n]\n");
        out.extend(footer.unwrap_or_default().bytes());
        Ok(())
    }
}
