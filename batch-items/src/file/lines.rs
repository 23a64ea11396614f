//! The lines of a file.

use std::io::{self, BufRead, BufReader, Read};

use super::content::Content;

/// Splits content into lines, and knows where the next one starts.
pub(crate) struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    /// The maximum length of a line.
    limit: usize,
    /// The position of the next line, and its number, from 1.
    pub(crate) byte: u64,
    pub(crate) line: u64,
}

/// The next line, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextLine {
    Line,
    /// Longer than the limit. It was skipped.
    TooLong,
    End,
}

impl Lines {
    /// `line` is the number of the first line of `content`.
    pub(crate) fn new(content: Content, line: u64, limit: usize) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 16, content.bytes),
            limit,
            byte: content.start,
            line,
        }
    }

    /// Reads the next line into `text`, without its end, LF or CRLF. A last line need not have one.
    pub(crate) fn next(&mut self, text: &mut Vec<u8>) -> io::Result<NextLine> {
        text.clear();
        let (mut length, mut too_long) = (0u64, false);
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', bytes);
            let used = end.map_or(bytes.len(), |end| end + 1);
            too_long |= text.len() + used > self.limit.saturating_add(2);
            if !too_long {
                text.extend_from_slice(&bytes[..used]);
            }
            self.input.consume(used);
            length += used as u64;
            if end.is_some() {
                break;
            }
        }
        if length == 0 {
            return Ok(NextLine::End);
        }
        self.byte += length;
        self.line += 1;
        if text.last() == Some(&b'\n') {
            text.pop();
            if text.last() == Some(&b'\r') {
                text.pop();
            }
        }
        if too_long || text.len() > self.limit {
            text.clear();
            return Ok(NextLine::TooLong);
        }
        Ok(NextLine::Line)
    }

    /// Skips lines, as many as there are.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<()> {
        let mut text = Vec::new();
        for _ in 0..count {
            if self.next(&mut text)? == NextLine::End {
                break;
            }
        }
        Ok(())
    }

    /// Returns the rest of the content.
    pub(crate) fn into_content(self) -> Content {
        Content {
            bytes: Box::new(self.input),
            start: self.byte,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, limit: usize, expected: &[(&str, u64)]) {
        let content = Content {
            bytes: Box::new(io::Cursor::new(content.to_owned())),
            start: 0,
        };
        let (mut lines, mut text, mut found) = (Lines::new(content, 1, limit), Vec::new(), Vec::new());
        loop {
            match lines.next(&mut text).unwrap() {
                NextLine::End => break,
                NextLine::TooLong => found.push(("too long".to_owned(), lines.byte)),
                NextLine::Line => found.push((String::from_utf8(text.clone()).unwrap(), lines.byte)),
            }
        }
        let found: Vec<_> = found.iter().map(|(text, byte)| (text.as_str(), *byte)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_end_with_lf_crlf_or_the_file() {
        check("", 9, &[]);
        check("\n", 9, &[("", 1)]);
        check("a\r\nb\n\nc", 9, &[("a", 3), ("b", 5), ("", 6), ("c", 7)]);
        check("a\rb\r\r\n", 9, &[("a\rb\r", 6)]);
    }

    #[test]
    fn a_line_over_the_limit_is_skipped() {
        check(
            "abc\nabcd\r\nabcde\nx",
            4,
            &[("abc", 4), ("abcd", 10), ("too long", 16), ("x", 17)],
        );
        let long = "x".repeat(1 << 18) + "\nend";
        check(&long, 100, &[("too long", (1 << 18) + 1), ("end", (1 << 18) + 4)]);
    }
}
