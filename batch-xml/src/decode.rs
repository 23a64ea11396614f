//! Decodes the bytes of a file, and compares the encoding with the one that the file declares.

use std::sync::Arc;

use crate::codes;
use crate::diagnostics::{Diagnostic, JobXmlErrors};
use crate::limits::Limits;
use crate::span::{Source, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Source {
    /// Decodes a source from UTF-8 or UTF-16, detected by the byte order mark or the first characters, and checks
    /// that the XML declaration names the same encoding.
    ///
    /// # Errors
    ///
    /// A diagnostic if there are more than [`Limits::file_bytes`] bytes, if they cannot be decoded, or if the
    /// declaration names another encoding.
    // Spec: JSL-DOC-01
    pub fn from_bytes(
        name: impl Into<String>,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Arc<Source>, JobXmlErrors> {
        if bytes.len() > limits.file_bytes {
            let source = Source::new(name, "");
            return Err(too_large(&source, bytes.len(), limits).into());
        }
        let (encoding, mark) = detect(bytes);
        let decoded = match encoding {
            Encoding::Utf8 => utf8(&bytes[mark..]),
            Encoding::Utf16Le => utf16(&bytes[mark..], u16::from_le_bytes),
            Encoding::Utf16Be => utf16(&bytes[mark..], u16::from_be_bytes),
        };
        match decoded {
            Ok(text) => declared_as_is(Source::new(name, text), encoding),
            Err(broken) => {
                let source = Source::new(name, broken.lossy);
                let span = Span::new(
                    &source,
                    broken.at..broken.at + char::REPLACEMENT_CHARACTER.len_utf8(),
                );
                let message = format!("the file is not valid {}", encoding.name());
                let error = Diagnostic::error(codes::ENCODING, message, span)
                    .label("these bytes are not a character");
                Err(error.help("save the file as UTF-8").into())
            }
        }
    }
}

/// Creates the error for a text that exceeds the limit.
pub(crate) fn too_large(source: &Arc<Source>, bytes: usize, limits: &Limits) -> Diagnostic {
    let message = format!(
        "the file has {bytes} bytes, but the limit is {}",
        limits.file_bytes
    );
    Diagnostic::error(codes::TOO_LARGE, message, Span::new(source, 0..0))
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
        }
    }

    /// Returns whether the XML declaration names this encoding.
    fn is_called(self, declared: &str) -> bool {
        let names: &[&str] = match self {
            Encoding::Utf8 => &["UTF-8", "UTF8", "US-ASCII", "ASCII"],
            Encoding::Utf16Le => &["UTF-16", "UTF-16LE"],
            Encoding::Utf16Be => &["UTF-16", "UTF-16BE"],
        };
        names.iter().any(|name| name.eq_ignore_ascii_case(declared))
    }
}

/// Detects the encoding and the length of the byte order mark; without a mark by the first character, which is `<`
/// (appendix F of the XML recommendation).
fn detect(bytes: &[u8]) -> (Encoding, usize) {
    match bytes {
        [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
        [0xff, 0xfe, ..] => (Encoding::Utf16Le, 2),
        [0xfe, 0xff, ..] => (Encoding::Utf16Be, 2),
        [b'<', 0, ..] => (Encoding::Utf16Le, 0),
        [0, b'<', ..] => (Encoding::Utf16Be, 0),
        _ => (Encoding::Utf8, 0),
    }
}

/// Text that could not be decoded: with replacement characters, and the place of the first of them.
struct Broken {
    lossy: String,
    at: usize,
}

fn utf8(bytes: &[u8]) -> Result<String, Broken> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Broken {
            lossy: String::from_utf8_lossy(bytes).into_owned(),
            at: error.valid_up_to(),
        }),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Broken> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut broken_at = None;
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let c = decoded.unwrap_or_else(|_| {
            broken_at.get_or_insert(text.len());
            char::REPLACEMENT_CHARACTER
        });
        text.push(c);
    }
    if !rest.is_empty() {
        broken_at.get_or_insert(text.len());
        text.push(char::REPLACEMENT_CHARACTER);
    }
    match broken_at {
        None => Ok(text),
        Some(at) => Err(Broken { lossy: text, at }),
    }
}

fn declared_as_is(source: Arc<Source>, encoding: Encoding) -> Result<Arc<Source>, JobXmlErrors> {
    let Some(range) = declared_encoding(source.text()) else {
        return Ok(source);
    };
    let span = Span::new(&source, range);
    if encoding.is_called(span.text()) {
        return Ok(source);
    }
    let message = format!(
        "the file is not encoded in {}",
        crate::diagnostics::quoted(span.text())
    );
    let error = Diagnostic::error(codes::ENCODING, message, span.clone())
        .label(format!("the file was read as {}", encoding.name()))
        .help("save the file as UTF-8 and declare `UTF-8`, or leave the declaration out");
    Err(error.into())
}

/// Returns the range of the value of `encoding` in the XML declaration.
fn declared_encoding(text: &str) -> Option<std::ops::Range<usize>> {
    let declaration = &text[..text.starts_with("<?xml").then(|| text.find("?>"))??];
    let after_name = declaration.find("encoding")? + "encoding".len();
    let quote_at = after_name + declaration[after_name..].find(['"', '\''])?;
    let start = quote_at + 1;
    let length = declaration[start..].find(&declaration[quote_at..start])?;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "<job id=\"Lohn-€\"/>";

    fn bytes(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    fn check(bytes: &[u8], expect: Result<&str, (&str, std::ops::Range<usize>)>) {
        match (Source::from_bytes("t.xml", bytes, &Limits::default()), expect) {
            (Ok(source), Ok(text)) => assert_eq!(source.text(), text),
            (Err(errors), Err((code, range))) => {
                let error = &errors.into_inner()[0];
                assert_eq!((error.code, error.span.range()), (code, range), "{error}");
            }
            (found, expect) => panic!("found {found:?}, expected {expect:?}"),
        }
    }

    // Spec: JSL-DOC-01
    #[test]
    fn utf8_and_utf16_with_and_without_a_mark() {
        check(PLAIN.as_bytes(), Ok(PLAIN));
        check(format!("\u{feff}{PLAIN}").as_bytes(), Ok(PLAIN));
        for unit in [u16::to_le_bytes, u16::to_be_bytes] {
            check(&bytes(PLAIN, unit), Ok(PLAIN));
            check(&bytes(&format!("\u{feff}{PLAIN}"), unit), Ok(PLAIN));
            let declared = format!("<?xml version=\"1.0\" encoding=\"utf-16\"?>{PLAIN}");
            check(&bytes(&declared, unit), Ok(&declared));
        }
    }

    // Spec: JSL-DOC-01
    #[test]
    fn the_declaration_must_name_the_encoding_of_the_file() {
        let latin = "<?xml version=\"1.0\" encoding='ISO-8859-1'?><job/>";
        check(latin.as_bytes(), Err((codes::ENCODING, 30..40)));
        let wide = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><job/>";
        check(wide.as_bytes(), Err((codes::ENCODING, 30..36)));
        let narrow = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><job/>";
        check(&bytes(narrow, u16::to_le_bytes), Err((codes::ENCODING, 30..35)));
        check(narrow.as_bytes(), Ok(narrow));
        check("<?xml encoding".as_bytes(), Ok("<?xml encoding"));
        check(
            "<?xml encoding=?><a b='x'/>".as_bytes(),
            Ok("<?xml encoding=?><a b='x'/>"),
        );
    }

    #[test]
    fn undecodable_bytes_are_pointed_at() {
        check(b"<job id=\"\xff\"/>", Err((codes::ENCODING, 9..12)));
        check(b"<job id=\"\xc3", Err((codes::ENCODING, 9..12)));
        check(
            &[0xff, 0xfe, 0x3c, 0x00, 0x00, 0xd8, 0x3c, 0x00],
            Err((codes::ENCODING, 1..4)),
        );
        check(&[0xff, 0xfe, 0x3c, 0x00, 0x3c], Err((codes::ENCODING, 1..4)));
        check(b"", Ok(""));
    }

    #[test]
    fn the_size_limit_is_the_largest_size_allowed() {
        let limits = Limits {
            file_bytes: 10,
            ..Limits::default()
        };
        for (size, allowed) in [(9, true), (10, true), (11, false)] {
            let source = Source::from_bytes("t.xml", &vec![b' '; size], &limits);
            assert_eq!(source.is_ok(), allowed, "{size}");
        }
    }
}
