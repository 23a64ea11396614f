//! The bytes of a file, in a buffer, with the place of the next one.

use std::io::{self, Read};
use std::ops::Range;

use super::content::Content;
use super::line_ends::LineEnds;
use super::place::Place;

/// The content of a file, which is read once. The buffer keeps the last record until more is read, so that its text is known without
/// reading the file again.
pub struct Bytes {
    content: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    unread: Range<usize>,
    /// True if nothing comes after `unread`.
    ended: bool,
    /// The position of the next byte, and its line.
    pub(crate) byte: u64,
    pub(crate) line: u64,
    line_ends: LineEnds,
}

/// The next line, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextLine {
    /// Its place in the buffer, without its end.
    Line(Range<usize>),
    /// Longer than the limit. It was skipped.
    TooLong,
    /// There is no further line.
    End,
}

/// Returns where the line that begins at `from` ends, without and with its end; `None` if that is not in `bytes`, after which more comes
/// unless `ended`.
pub(crate) fn line_end(bytes: &[u8], from: usize, ended: bool) -> Option<(usize, usize)> {
    let Some(at) = memchr::memchr2(b'\n', b'\r', &bytes[from..]) else {
        return (ended && from < bytes.len()).then_some((bytes.len(), bytes.len()));
    };
    let at = from + at;
    match (bytes[at], bytes.get(at + 1)) {
        (b'\r', Some(b'\n')) => Some((at, at + 2)),
        (b'\r', None) if !ended => None,
        _ => Some((at, at + 1)),
    }
}

impl Bytes {
    /// `place` is the place of the first byte.
    pub(crate) fn new(content: Content, line: u64) -> Self {
        Self {
            content: content.bytes,
            buffer: vec![0; 1 << 16],
            unread: 0..0,
            ended: false,
            byte: content.start,
            line,
            line_ends: LineEnds::default(),
        }
    }

    /// Returns the place of the next byte. `record` is the number of records before it.
    pub fn place(&self, record: u64) -> Place {
        Place {
            byte: self.byte,
            line: self.line,
            record,
            ..Place::default()
        }
    }

    /// Returns the bytes in the buffer that are not consumed.
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.unread.clone()]
    }

    /// Returns whether nothing comes after the unread bytes.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns consumed bytes, at a place in the buffer that is valid until more is read.
    ///
    /// # Panics
    /// If the place is not of this buffer.
    pub fn slice(&self, place: &Range<usize>) -> &[u8] {
        &self.buffer[place.clone()]
    }

    /// Reads more after the unread bytes, at least as many as these are: who looks at all of them again reads each twice at most.
    ///
    /// # Errors
    /// If the file cannot be read, or has changed.
    pub fn fill(&mut self) -> io::Result<()> {
        let wanted = (2 * self.unread.len()).max(1);
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.unread.end < wanted && !self.ended {
            match self.content.read(&mut self.buffer[self.unread.end..]) {
                Ok(count) => {
                    self.ended = count == 0;
                    self.unread.end += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads up to `count` bytes, fewer at the end of the file, and returns their place in the buffer.
    ///
    /// # Errors
    /// As of [`fill`](Self::fill).
    pub fn take(&mut self, count: usize) -> io::Result<Range<usize>> {
        while self.unread.len() < count && !self.ended {
            self.fill()?;
        }
        Ok(self.consume(count.min(self.unread.len())))
    }

    /// Consumes bytes, and returns their place in the buffer.
    ///
    /// # Panics
    /// If they are more than those that are unread.
    pub fn consume(&mut self, count: usize) -> Range<usize> {
        let place = self.unread.start..self.unread.start + count;
        self.line += self.line_ends.count(&self.buffer[place.clone()]);
        self.byte += count as u64;
        self.unread.start = place.end;
        place
    }

    /// Reads the next line. It ends with LF, CRLF or CR; the last one need not have an end.
    ///
    /// # Errors
    /// As of [`fill`](Self::fill).
    pub fn next_line(&mut self, limit: usize) -> io::Result<NextLine> {
        let (mut searched, mut too_long) = (0, false);
        loop {
            if let Some((length, end)) = line_end(self.unread(), searched, self.ended) {
                let place = self.consume(end);
                return Ok(match too_long || length > limit {
                    true => NextLine::TooLong,
                    false => NextLine::Line(place.start..place.start + length),
                });
            }
            if self.ended {
                // The last bytes of this line were skipped.
                return Ok(if too_long {
                    NextLine::TooLong
                } else {
                    NextLine::End
                });
            }
            // A CR at the end may be a part of its end.
            searched = self.unread.len().saturating_sub(1);
            if searched > limit {
                self.consume(searched);
                (searched, too_long) = (0, true);
            }
            self.fill()?;
        }
    }

    /// Skips lines, as many as there are.
    pub(crate) fn skip_lines(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            if self.next_line(0)? == NextLine::End {
                break;
            }
        }
        Ok(())
    }

    /// Returns the next byte that is not blank, without consuming it.
    pub(crate) fn skip_blanks(&mut self) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.unread();
            let blanks = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let next = bytes.get(blanks).copied();
            self.consume(blanks);
            if next.is_some() || self.ended {
                return Ok(next);
            }
            self.fill()?;
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
            let end = end(self.unread());
            let used = self.consume(end.unwrap_or(self.unread.len()));
            keep(self.slice(&used));
            if end.is_some() || self.ended {
                return Ok(end.is_some());
            }
            self.fill()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns at most so many bytes at once.
    struct Slow(io::Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.1);
            self.0.read(&mut buffer[..count])
        }
    }

    fn bytes(content: &str, at_once: usize) -> Bytes {
        let content = io::Cursor::new(content.as_bytes().to_vec());
        let content = Content {
            bytes: Box::new(Slow(content, at_once)),
            start: 0,
        };
        Bytes::new(content, 1)
    }

    /// Checks the lines, each with the position and the number of the next one, however many bytes are read at once.
    fn check(content: &str, limit: usize, expected: &[(&str, u64, u64)]) {
        for at_once in [1, 2, 3, 1 << 20] {
            let (mut bytes, mut found) = (bytes(content, at_once), Vec::new());
            loop {
                let text = match bytes.next_line(limit).unwrap() {
                    NextLine::End => break,
                    NextLine::TooLong => "too long".to_owned(),
                    NextLine::Line(place) => String::from_utf8(bytes.slice(&place).to_vec()).unwrap(),
                };
                found.push((text, bytes.byte, bytes.line));
            }
            let found: Vec<_> = found
                .iter()
                .map(|(text, byte, line)| (text.as_str(), *byte, *line))
                .collect();
            assert_eq!(found, expected, "{content:?} {at_once}");
        }
    }

    #[test]
    fn lines_end_with_lf_crlf_cr_or_the_file() {
        check("", 9, &[]);
        check("\n", 9, &[("", 1, 2)]);
        check(
            "a\r\nb\n\nc",
            9,
            &[("a", 3, 2), ("b", 5, 3), ("", 6, 4), ("c", 7, 4)],
        );
        check("a\rb\r", 9, &[("a", 2, 2), ("b", 4, 3)]);
        check(
            "a\r\r\nb\n\r",
            9,
            &[("a", 2, 2), ("", 4, 3), ("b", 6, 4), ("", 7, 5)],
        );
    }

    #[test]
    fn a_line_over_the_limit_is_skipped() {
        check(
            "abc\nabcd\r\nabcde\nx",
            4,
            &[("abc", 4, 2), ("abcd", 10, 3), ("too long", 16, 4), ("x", 17, 4)],
        );
        check(
            "abcdef\rx\rabcdef",
            2,
            &[("too long", 7, 2), ("x", 9, 3), ("too long", 15, 3)],
        );
        let long = "x".repeat(1 << 18) + "\nend";
        let mut bytes = bytes(&long, 1 << 12);
        assert_eq!(bytes.next_line(100).unwrap(), NextLine::TooLong);
        assert_eq!((bytes.byte, bytes.line), ((1 << 18) + 1, 2));
        assert!(bytes.buffer.len() <= 1 << 16, "what is skipped takes no memory");
    }

    /// A buffer grows with its record, and each byte is looked at twice at most.
    #[test]
    fn a_long_record_is_read_in_parts_of_growing_size() {
        let content = "x".repeat(1 << 20) + "\n";
        let (mut bytes, mut searched) = (bytes(&content, 1 << 10), 0);
        while memchr::memchr(b'\n', bytes.unread()).is_none() {
            searched += bytes.unread().len();
            bytes.fill().unwrap();
        }
        assert!(searched <= 2 << 20, "{searched}");
    }

    #[test]
    fn a_blank_at_the_end_of_the_buffer_is_skipped() {
        for at_once in [1, 4] {
            let mut bytes = bytes(" \r\n\t\rx", at_once);
            assert_eq!(bytes.skip_blanks().unwrap(), Some(b'x'));
            assert_eq!((bytes.byte, bytes.line), (5, 3));
            bytes.consume(1);
            assert_eq!(bytes.skip_blanks().unwrap(), None);
        }
    }
}
