//! The text of delimited rows.

use super::format::{Character, DelimitedFormat, QuoteMode, other_delimiter};
use crate::file::LineEnd;
use crate::rows::FieldValue;

/// How the fields of a row become text.
pub(super) struct RowForm {
    delimiter: u8,
    quote: Option<u8>,
    /// Precedes a quote within quotes.
    escape: u8,
    quotes: QuoteMode,
    line_end: &'static str,
    /// Whether a field that contains the byte needs quotes.
    special: [bool; 256],
    /// Whether a number can contain such a byte.
    checks_numbers: bool,
}

/// The bytes of numbers.
const OF_NUMBERS: &[u8] = b"0123456789+-.eEinfNa";

/// The characters that usually begin a comment, and the one that would be the byte-order mark of the file.
const OF_COMMENTS: [char; 7] = ['#', '%', ';', '!', '/', '*', '\u{feff}'];

impl RowForm {
    pub(super) fn new(format: &DelimitedFormat, quotes: QuoteMode, line_end: LineEnd) -> Self {
        let quote = format.quote.0;
        let escape = format.escape.map(|Character(escape)| escape);
        let mut special = [false; 256];
        let bytes = [format.delimiter.0, b'\n', b'\r'];
        for byte in bytes.into_iter().chain(quote).chain(escape) {
            special[usize::from(byte)] = true;
        }
        let checks_numbers = OF_NUMBERS.iter().any(|byte| special[usize::from(*byte)]);
        Self {
            delimiter: format.delimiter.0,
            quote,
            escape: escape.or(quote).unwrap_or(b'"'),
            quotes,
            line_end: line_end.as_str(),
            special,
            checks_numbers,
        }
    }

    /// Appends the field with this index. Returns whether a reader finds it there.
    #[inline]
    pub(super) fn append(&self, index: usize, value: FieldValue<'_>, out: &mut Vec<u8>) -> bool {
        if index > 0 {
            out.push(self.delimiter);
        }
        self.append_value(index == 0, value, out)
    }

    /// Appends the text of a field. The first one of a row has quotes if it would begin a comment. Returns whether a reader finds it there.
    pub(super) fn append_value(&self, is_first: bool, value: FieldValue<'_>, out: &mut Vec<u8>) -> bool {
        match value {
            FieldValue::Null => self.append_text("", self.quotes == QuoteMode::Text, out),
            FieldValue::Bool(value) => self.append_text(if value { "true" } else { "false" }, false, out),
            FieldValue::Int(value) => self.append_text(itoa::Buffer::new().format(value), true, out),
            FieldValue::Float(value) => self.append_text(zmij::Buffer::new().format(value), true, out),
            FieldValue::Number(value) => self.append_text(value, true, out),
            FieldValue::Text(value) | FieldValue::Json(value) => match self.quote {
                Some(quote)
                    if is_first && self.quotes != QuoteMode::Never && value.starts_with(OF_COMMENTS) =>
                {
                    self.append_quoted(value, quote, out)
                }
                _ => self.append_text(value, false, out),
            },
            FieldValue::Bytes(value) => {
                let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                self.append_text(&format!("\\x{digits}"), false, out)
            }
        }
    }

    /// Appends the name of the only column. One that contains another delimiter is quoted: without quotes, readers reject it.
    pub(super) fn append_only_name(&self, name: &str, out: &mut Vec<u8>) {
        match self.quote {
            Some(quote)
                if self.quotes != QuoteMode::Never && other_delimiter(name, self.delimiter).is_some() =>
            {
                self.append_quoted(name, quote, out);
            }
            _ => {
                self.append_value(true, FieldValue::Text(name), out);
            }
        }
    }

    /// Appends the text of a field, as [`append_value`](Self::append_value) has made it.
    pub(super) fn append_raw(&self, index: usize, field: &[u8], out: &mut Vec<u8>) {
        if index > 0 {
            out.push(self.delimiter);
        }
        out.extend_from_slice(field);
    }

    fn append_text(&self, text: &str, is_number: bool, out: &mut Vec<u8>) -> bool {
        let may_be_special = self.checks_numbers || !is_number;
        let is_special = || may_be_special && text.bytes().any(|byte| self.special[usize::from(byte)]);
        let needs_quotes = match self.quotes {
            QuoteMode::Necessary => is_special(),
            QuoteMode::Always => true,
            QuoteMode::Text => !is_number || is_special(),
            QuoteMode::Never => false,
        };
        match self.quote {
            Some(quote) if needs_quotes => self.append_quoted(text, quote, out),
            _ => {
                out.extend_from_slice(text.as_bytes());
                (self.quote.is_some() && self.quotes != QuoteMode::Never) || self.is_plain(text)
            }
        }
    }

    /// Returns whether a text without quotes is one field of a row.
    fn is_plain(&self, text: &str) -> bool {
        let ends = |byte: u8| [self.delimiter, b'\n', b'\r'].contains(&byte);
        text.bytes().next() != self.quote.or(Some(self.delimiter)) && !text.bytes().any(ends)
    }

    fn append_quoted(&self, text: &str, quote: u8, out: &mut Vec<u8>) -> bool {
        out.push(quote);
        for byte in text.bytes() {
            // An escape character is escaped by itself.
            if byte == quote || byte == self.escape {
                out.push(self.escape);
            }
            out.push(byte);
        }
        out.push(quote);
        true
    }

    /// Ends a row. One of a single empty field is quoted: an empty line is no row. Returns whether it is a row.
    pub(super) fn end(&self, fields: usize, out: &mut Vec<u8>) -> bool {
        let is_blank = fields == 1 && out.last().is_none_or(|byte| *byte == b'\n');
        if let (true, Some(quote)) = (is_blank, self.quote) {
            out.extend([quote, quote]);
        }
        out.extend_from_slice(self.line_end.as_bytes());
        !is_blank || self.quote.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::OrNone;
    use super::*;

    fn rows(delimiter: u8) -> String {
        let format = DelimitedFormat {
            delimiter: Character(delimiter),
            quote: OrNone(Some(b'"')),
            escape: None,
        };
        let form = RowForm::new(&format, QuoteMode::Necessary, LineEnd::Lf);
        let mut text = Vec::new();
        for (index, value) in [
            FieldValue::Int(-12),
            FieldValue::Float(1.5),
            FieldValue::Float(1e300),
        ]
        .into_iter()
        .enumerate()
        {
            form.append(index, value, &mut text);
        }
        String::from_utf8(text).unwrap()
    }

    /// A number is quoted if it contains the delimiter, or another character that has a meaning.
    #[test]
    fn numbers_with_special_characters_are_quoted() {
        assert_eq!(rows(b','), "-12,1.5,1e+300");
        assert_eq!(rows(b'.'), "-12.\"1.5\".1e+300");
        assert_eq!(rows(b'e'), "-12e1.5e\"1e+300\"");
    }
}
