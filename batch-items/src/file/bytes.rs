//! The bytes of a file, with the place of the next one.

use std::io::{self, BufRead, BufReader, Read};

use super::input::Place;

/// Bytes of a format whose records are not lines.
pub(crate) struct Bytes {
    input: BufReader<Box<dyn Read + Send>>,
    /// The position of the next byte, and its line.
    pub(crate) byte: u64,
    pub(crate) line: u64,
}

impl Bytes {
    /// `place` is that of the first byte.
    pub(crate) fn new(bytes: Box<dyn Read + Send>, place: Place) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 16, bytes),
            byte: place.byte,
            line: place.line,
        }
    }

    /// Returns the place of the next byte, after so many records.
    pub(crate) fn place(&self, record: u64) -> Place {
        Place {
            byte: self.byte,
            line: self.line,
            record,
            ..Place::default()
        }
    }

    /// Consumes bytes without line ends.
    pub(crate) fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.byte += count as u64;
    }

    /// Returns the next byte that is not blank, without consuming it.
    pub(crate) fn skip_blanks(&mut self) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let blanks = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let next = bytes.get(blanks).copied();
            self.line += memchr::memchr_iter(b'\n', &bytes[..blanks]).count() as u64;
            self.consume(blanks);
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Consumes bytes up to the index that `end` finds in one of the buffers, and passes them to `keep`. Returns whether it
    /// found one.
    pub(crate) fn read_until(
        &mut self,
        mut end: impl FnMut(&[u8]) -> Option<usize>,
        mut keep: impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            let end = end(bytes);
            let used = &bytes[..end.unwrap_or(bytes.len())];
            keep(used);
            let length = used.len();
            self.line += memchr::memchr_iter(b'\n', used).count() as u64;
            self.consume(length);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// The bytes of a record, unless they are more than the limit.
pub(crate) struct Part {
    bytes: Vec<u8>,
    limit: usize,
    too_long: bool,
}

impl Part {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            too_long: false,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.too_long |= self.bytes.len() + bytes.len() > self.limit;
        if self.too_long {
            self.bytes.clear();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.too_long = false;
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// Returns the bytes; none if they were too many.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
