//! The lexical rules of XML 1.0 that the event reader leaves to its caller: names, characters, references,
//! and the attributes of a start tag.

use std::borrow::Cow;
use std::ops::Range;

/// Returns whether XML allows the character, literally or as a reference.
pub(crate) fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Returns whether `name` is an XML name with at most one colon, which is neither first nor last.
pub(crate) fn is_name(name: &str) -> bool {
    let mut parts = name.split(':');
    let is_part = |part: &str| part.starts_with(is_name_start) && part.chars().all(is_name_char);
    parts.next().is_some_and(is_part) && parts.next().is_none_or(is_part) && parts.next().is_none()
}

/// Returns the name without its prefix.
pub(crate) fn local_name(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

/// Returns whether an XML declaration may contain this encoding name.
pub(crate) fn is_encoding_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | '_' | 'a'..='z'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// The message for a `&` that does not start a reference.
pub(crate) const AMPERSAND: &str = "`&` starts a reference; write `&amp;` for a literal `&`";

/// A violation of the rules, with the bytes at fault.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) range: Range<usize>,
    pub(crate) kind: FlawKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlawKind {
    /// A syntax error with its message.
    Syntax(&'static str),
    /// A reference to an entity that is not one of the five.
    UndefinedEntity,
}

impl Flaw {
    fn syntax(range: Range<usize>, what: &'static str) -> Flaw {
        Flaw {
            range,
            kind: FlawKind::Syntax(what),
        }
    }
}

/// The ranges of name and value of an attribute in the scanned text; the value without its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawAttribute {
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// Returns the attributes in `text`, which is a start tag after the element's name. Ends after the first flaw.
pub(crate) fn attributes(text: &str) -> Attributes<'_> {
    Attributes { text, at: 0 }
}

pub(crate) struct Attributes<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Attributes<'_> {
    type Item = Result<RawAttribute, Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        let blank_from = self.at;
        self.skip_blanks();
        if self.at == self.text.len() {
            return None;
        }
        let scanned = if self.at == blank_from {
            let end = self.at + self.rest().chars().next().map_or(0, char::len_utf8);
            Err(Flaw::syntax(
                self.at..end,
                "a blank is missing before this attribute",
            ))
        } else {
            self.attribute()
        };
        if scanned.is_err() {
            self.at = self.text.len();
        }
        Some(scanned)
    }
}

impl Attributes<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches(is_blank).len();
    }

    fn attribute(&mut self) -> Result<RawAttribute, Flaw> {
        let start = self.at;
        let length = self
            .rest()
            .find(|c| is_blank(c) || matches!(c, '=' | '"' | '\''))
            .unwrap_or(self.rest().len());
        let name = start..start + length;
        if !is_name(&self.text[name.clone()]) {
            return Err(Flaw::syntax(
                start..start + length.max(1),
                "not a valid attribute name",
            ));
        }
        self.at = name.end;
        self.skip_blanks();
        if !self.rest().starts_with('=') {
            return Err(Flaw::syntax(name, "this attribute has no value"));
        }
        self.at += 1;
        self.skip_blanks();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return Err(Flaw::syntax(name, "the value of this attribute is not in quotes")),
        };
        let start = self.at + 1;
        let Some(length) = self.text[start..].find(quote) else {
            return Err(Flaw::syntax(
                name,
                "the value of this attribute has no closing quote",
            ));
        };
        self.at = start + length + 1;
        Ok(RawAttribute {
            name,
            value: start..start + length,
        })
    }
}

/// Resolves references in an attribute value and replaces line breaks and tabs by blanks. Every flaw is returned;
/// text with a flaw is left as written.
// Spec: JSL-DOC-01, JSL-DOC-02
pub(crate) fn attribute_value(raw: &str) -> (Cow<'_, str>, Vec<Flaw>) {
    if !raw.contains(['&', '<', '\t', '\n', '\r']) {
        return (Cow::Borrowed(raw), Vec::new());
    }
    let mut value = String::with_capacity(raw.len());
    let mut flaws = Vec::new();
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        let at = raw.len() - rest.len();
        let mut length = c.len_utf8();
        match c {
            '&' => {
                length = reference_length(rest);
                match reference(&rest[1..length]) {
                    Ok(c) => value.push(c),
                    Err(kind) => flaws.push(Flaw {
                        range: at..at + length,
                        kind,
                    }),
                }
            }
            '<' => flaws.push(Flaw::syntax(at..at + 1, "write `&lt;` for `<` in a value")),
            '\r' if rest[1..].starts_with('\n') => {}
            '\t' | '\n' | '\r' => value.push(' '),
            other => value.push(other),
        }
        rest = &rest[length..];
    }
    (Cow::Owned(value), flaws)
}

/// Returns the length of the reference that `text` starts with, up to `;` or to the first character that cannot be
/// part of it.
fn reference_length(text: &str) -> usize {
    let end = text[1..]
        .find(|c| is_blank(c) || matches!(c, ';' | '&' | '<' | '"' | '\''))
        .map(|at| at + 1);
    match end {
        Some(end) if text[end..].starts_with(';') => end + 1,
        Some(end) => end,
        None => text.len(),
    }
}

/// Returns the character that a reference stands for; `text` lacks `&` but ends with `;`.
pub(crate) fn reference(text: &str) -> Result<char, FlawKind> {
    let Some(name) = text.strip_suffix(';') else {
        return Err(FlawKind::Syntax(AMPERSAND));
    };
    match name {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "quot" => Ok('"'),
        _ => match name.strip_prefix('#') {
            Some(number) => {
                character(number).ok_or(FlawKind::Syntax("this reference is not a valid XML character"))
            }
            None if is_name(name) => Err(FlawKind::UndefinedEntity),
            None => Err(FlawKind::Syntax(AMPERSAND)),
        },
    }
}

fn character(number: &str) -> Option<char> {
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    // `from_str_radix` takes a sign, XML does not.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    u32::from_str_radix(digits, radix)
        .ok()
        .and_then(char::from_u32)
        .filter(|c| is_char(*c))
}

/// Appends an escaped value, which is read back unchanged. Characters that XML cannot hold are left as they are.
pub(crate) fn push_escaped(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // Literal ones would be read as blanks.
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that meets nothing has failed")]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(&str, &str)> {
        attributes(text)
            .map(|found| found.unwrap())
            .map(|raw| (&text[raw.name], &text[raw.value]))
            .collect()
    }

    fn flaw(text: &str) -> (&str, &'static str) {
        let last = attributes(text).last().unwrap().unwrap_err();
        match last.kind {
            FlawKind::Syntax(what) => (&text[last.range], what),
            FlawKind::UndefinedEntity => (&text[last.range], "entity"),
        }
    }

    #[test]
    fn scans_attributes() {
        assert_eq!(values(""), []);
        assert_eq!(values("  "), []);
        assert_eq!(values(" a=\"1\" b:c\n=\t'2\"' "), [("a", "1"), ("b:c", "2\"")]);
        assert_eq!(values(" ä=''"), [("ä", "")]);
    }

    // Spec: JSL-DOC-02
    #[test]
    fn ill_formed_attributes_are_flaws() {
        for (text, at, what) in [
            (" a='1'b='2'", "b", "a blank is missing before this attribute"),
            (" a='1'ä='2'", "ä", "a blank is missing before this attribute"),
            (" a=1", "a", "the value of this attribute is not in quotes"),
            (" a=", "a", "the value of this attribute is not in quotes"),
            (" a='x", "a", "the value of this attribute has no closing quote"),
            (" a b='x'", "a", "this attribute has no value"),
            (" 1a='x'", "1a", "not a valid attribute name"),
            (" a:b:c='x'", "a:b:c", "not a valid attribute name"),
            (" ='x'", "=", "not a valid attribute name"),
            (" <a b='x'", "<a", "not a valid attribute name"),
        ] {
            assert_eq!(flaw(text), (at, what), "{text}");
        }
    }

    #[track_caller]
    fn check_value(raw: &str, expect: &str) {
        let (value, flaws) = attribute_value(raw);
        assert_eq!((value.as_ref(), flaws.len()), (expect, 0), "{raw:?}: {flaws:?}");
    }

    // Spec: JSL-DOC-01
    #[test]
    fn values_are_unescaped_and_normalised() {
        check_value("plain", "plain");
        check_value("&lt;&gt;&amp;&apos;&quot;", "<>&'\"");
        check_value("&#65;&#x42;&#x1F600;", "AB😀");
        check_value("a\tb\nc\r\nd\re", "a b c d e");
        check_value("a&#10;b&#x9;c", "a\nb\tc");
        check_value("&amp;lt;", "&lt;");
    }

    // Spec: JSL-DOC-02, JSL-DOC-18
    #[test]
    fn flaws_in_values_are_found_all() {
        let ranges = |raw: &str| {
            attribute_value(raw)
                .1
                .into_iter()
                .map(|f| raw[f.range].to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(ranges("a<b&x;c&"), ["<", "&x;", "&"]);
        assert_eq!(
            ranges("AT&T, &#0; &#xD800; &#x110000; &#+65; &#; &#x;"),
            ["&T,", "&#0;", "&#xD800;", "&#x110000;", "&#+65;", "&#;", "&#x;"]
        );
        assert_eq!(reference("xxe;"), Err(FlawKind::UndefinedEntity));
    }

    #[test]
    fn names() {
        for good in ["a", "_a", "checkpoint-policy", "b:job", "日本"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "1", "-a", "a b", ":a", "a:", "a:b:c", "a<", "a/"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert_eq!((local_name("b:job"), local_name("job")), ("job", "job"));
    }
}
