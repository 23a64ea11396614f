//! Sources, byte spans, and values with a span.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// An XML text together with the name that diagnostics display.
///
/// Shared as `Arc<Source>`: every [`Span`] keeps its source, so a diagnostic can be rendered after the document is dropped.
pub struct Source {
    name: String,
    text: String,
    // Invariant: ascending, starts with 0, one entry per line.
    line_starts: Vec<usize>,
}

impl Source {
    /// Creates a source from decoded text. A leading byte order mark is dropped.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Arc::new(Source {
            name: name.into(),
            text,
            line_starts,
        })
    }

    /// Returns the name displayed in diagnostics, usually a path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns line and column of a byte offset, both counted from 1, the column in characters. An offset beyond the
    /// end counts as the end, one within a character as its start.
    pub fn line_column(&self, byte: usize) -> (usize, usize) {
        let byte = self.text.floor_char_boundary(byte);
        let line = self.line_index(byte);
        let column = self.text[self.line_starts[line]..byte].chars().count() + 1;
        (line + 1, column)
    }

    /// Returns the range of the line that contains `byte`, without its line break.
    pub(crate) fn line_range(&self, byte: usize) -> Range<usize> {
        let line = self.line_index(byte);
        let start = self.line_starts[line];
        let next = self.line_starts.get(line + 1);
        let text = &self.text[start..next.map_or(self.text.len(), |next| next - 1)];
        start..start + text.strip_suffix('\r').unwrap_or(text).len()
    }

    fn line_index(&self, byte: usize) -> usize {
        self.line_starts
            .partition_point(|start| *start <= byte)
            .saturating_sub(1)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({:?}, {} bytes)", self.name, self.text.len())
    }
}

/// A range of bytes of one [`Source`]. Displays as `file:line:column`.
#[derive(Clone)]
pub struct Span {
    source: Arc<Source>,
    // Invariant: within the text, on character boundaries, start <= end.
    range: Range<usize>,
}

impl Span {
    /// Creates a span of `source`, moved to the nearest character boundaries within the text.
    pub fn new(source: &Arc<Source>, range: Range<usize>) -> Span {
        let start = source.text.floor_char_boundary(range.start);
        let end = source.text.floor_char_boundary(range.end.max(start));
        Span {
            source: Arc::clone(source),
            range: start..end,
        }
    }

    /// Returns the source that the span refers to.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns the byte range, always on character boundaries.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the text of the span as written: references are not resolved.
    pub fn text(&self) -> &str {
        &self.source.text[self.range()]
    }

    /// Returns whether both spans are the same place.
    pub fn is(&self, other: &Span) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && self.range == other.range
    }

    /// Returns a part of this span, by a range relative to its start.
    pub(crate) fn part(&self, range: Range<usize>) -> Span {
        Span::new(
            &self.source,
            self.range.start + range.start..self.range.start + range.end,
        )
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.line_column(self.range.start);
        write!(f, "{}:{line}:{column}", self.source.name)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A value with its place in the XML. Equality ignores the place.
#[derive(Clone)]
pub struct Spanned<T> {
    /// The value; of attributes, after substitution.
    pub value: T,
    /// The place; of attributes, the text between the quotes.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Creates a value with its place.
    pub fn new(value: T, span: Span) -> Spanned<T> {
        Spanned { value, span }
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Spanned<T>) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Spanned<T> {}

impl<T: fmt::Debug> fmt::Debug for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_from_one() {
        let source = Source::new("t.xml", "ab\r\näö<x");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(4), (2, 1));
        assert_eq!(source.line_column(8), (2, 3));
        assert_eq!(source.line_column(5), (2, 1), "within a character");
        assert_eq!(source.line_column(1000), (2, 5), "beyond the end");
        assert_eq!(source.line_range(1), 0..2);
        assert_eq!(source.line_range(9), 4..10);
    }

    #[test]
    fn end_of_text_after_a_line_break_is_an_empty_line() {
        let source = Source::new("t.xml", "a\n");
        assert_eq!(source.line_column(2), (2, 1));
        assert_eq!(source.line_range(2), 2..2);
    }

    #[test]
    fn spans_never_split_a_character_nor_leave_the_text() {
        let source = Source::new("t.xml", "äb");
        assert_eq!(Span::new(&source, 1..2).range(), 0..2);
        assert_eq!(Span::new(&source, 7..9).range(), 3..3);
        assert_eq!(Span::new(&source, 2..3).text(), "b");
        assert_eq!(Span::new(&source, 2..3).to_string(), "t.xml:1:2");
    }

    #[test]
    fn equality_ignores_the_place() {
        let source = Source::new("t.xml", "aa");
        let here = Spanned::new("v", Span::new(&source, 0..1));
        let there = Spanned::new("v", Span::new(&source, 1..2));
        assert_eq!(here, there);
        assert_ne!(here, Spanned::new("w", Span::new(&source, 0..1)));
    }
}
