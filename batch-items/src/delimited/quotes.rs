//! Quotes that are not in order. The `csv` crate reads them somehow; a wrong value would be worse than a rejected row.

/// The characters of a format that matter for quotes.
#[derive(Clone, Copy)]
pub(super) struct Quotes {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    /// Precedes a quote within quotes; without it, a quote is doubled.
    pub(super) escape: Option<u8>,
    pub(super) comment: Option<u8>,
    /// True if blanks around fields are removed.
    pub(super) trim: bool,
}

impl Quotes {
    /// Returns whether a row with these values may have been read from quotes that are not in order.
    pub(super) fn are_suspicious(&self, values: &[u8]) -> bool {
        let suspicious = |quote| memchr::memchr2(quote, b'\n', values).is_some();
        self.quote.is_some_and(suspicious)
    }

    /// Returns whether a line is no row.
    pub(super) fn is_skipped(&self, line: &[u8]) -> bool {
        line.is_empty() || self.comment.is_some_and(|comment| line.first() == Some(&comment))
    }

    /// Returns whether text follows a closing quote. `rows` is a row as it is in the file, with the lines before it that are no rows.
    pub(super) fn text_follows(&self, mut rows: &[u8]) -> bool {
        let Some(quote) = self.quote else {
            return false;
        };
        while let Some(end) = memchr::memchr(b'\n', rows)
            && self.is_skipped(rows[..end].trim_ascii_end())
        {
            rows = &rows[end + 1..];
        }
        loop {
            let mut end = 0;
            if rows.first() == Some(&quote) {
                let Some(close) = self.closing(quote, rows) else {
                    return false;
                };
                end = close + 1;
                while self.trim && matches!(rows.get(end), Some(b' ' | b'\t')) {
                    end += 1;
                }
                if rows.get(end).is_some_and(|next| !self.ends_field(*next)) {
                    return true;
                }
            }
            // At the delimiter, or in a field without quotes.
            match rows[end..].iter().position(|byte| self.ends_field(*byte)) {
                Some(length) => rows = &rows[end + length + 1..],
                None => return false,
            }
        }
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || matches!(byte, b'\n' | b'\r')
    }

    /// Returns the index of the quote that closes a field, which begins with one.
    fn closing(&self, quote: u8, field: &[u8]) -> Option<usize> {
        let mut index = 1;
        loop {
            let byte = *field.get(index)?;
            let is_escaped = match self.escape {
                Some(escape) => byte == escape,
                None => byte == quote && field.get(index + 1) == Some(&quote),
            };
            if is_escaped {
                index += 2;
            } else if byte == quote {
                return Some(index);
            } else {
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_after_a_closing_quote_is_found() {
        let mut quotes = Quotes {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            comment: Some(b'#'),
            trim: false,
        };
        for (row, follows) in [
            ("1,\"Sm\"ith\",2", true),
            ("1,\"Ada,2\n3,\"Bob\",4", true),
            ("\"a\" ,b", true),
            ("1,Sm\"ith,2", false),
            ("\"a\"\"b\",\"\",\"c\nd\"", false),
            ("\"\"\"a\"\"\"", false),
            ("\"a\"\r", false),
            ("#\"x\"y\n\n1,\"a\"", false),
            ("", false),
        ] {
            assert_eq!(quotes.text_follows(row.as_bytes()), follows, "{row}");
        }
        quotes.trim = true;
        assert!(!quotes.text_follows(b"\"a\" ,b"));
        quotes.escape = Some(b'\\');
        assert!(!quotes.text_follows(b"\"a\\\"b\",c"));
        assert!(quotes.text_follows(b"\"a\"\"b\",c"));
        quotes.quote = None;
        assert!(!quotes.text_follows(b"\"a\"b"));
    }
}
