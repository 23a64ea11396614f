//! The text of output files.

use std::str::FromStr;

use batch_runtime::BatchArtifact;
use encoding_rs::{Encoding, UTF_8};

use super::content::encode;
use super::input::EncodingName;
use crate::choices;

/// The encoding and line ends of a text file.
///
/// Writers of text have these properties:
///
/// | property | default | |
/// |---|---|---|
/// | `encoding` | `utf-8` | a label of the WHATWG encoding standard, such as `windows-1252`, but not UTF-16, which can only be read; a character that it does not have is an [`EncodeError`](crate::EncodeError) |
/// | `line.end` | `lf` | `lf` or `crlf` |
#[derive(BatchArtifact)]
pub struct TextOutput {
    #[batch_property(name = "encoding", value = "utf-8")]
    encoding: OutputEncoding,
    #[batch_property(name = "line.end", value = "lf")]
    pub(crate) line_end: LineEnd,
}

/// An encoding that can be written.
#[derive(Clone, Copy)]
struct OutputEncoding(&'static Encoding);

impl Default for OutputEncoding {
    fn default() -> Self {
        Self(UTF_8)
    }
}

impl FromStr for OutputEncoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let EncodingName(encoding, _) = text.parse().map_err(
            |_| "expected a label of the WHATWG encoding standard, such as `utf-8` or `windows-1252`",
        )?;
        if encoding.output_encoding() != encoding {
            return Err(format!(
                "{} can be read, but not written; use `utf-8`",
                encoding.name()
            ));
        }
        Ok(Self(encoding))
    }
}

/// The end of a line: the property `line.end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnd {
    /// `lf`: a line feed, as on Unix. The default.
    #[default]
    Lf,
    /// `crlf`: carriage return and line feed, as on Windows.
    Crlf,
}

choices! {
    LineEnd { "lf" => Lf, "crlf" => Crlf }
}

impl LineEnd {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Crlf => "\r\n",
        }
    }
}

impl TextOutput {
    /// Returns whether text needs no conversion.
    pub(crate) fn is_utf8(&self) -> bool {
        self.encoding.0 == UTF_8
    }

    pub(crate) fn encoding(&self) -> &'static Encoding {
        self.encoding.0
    }

    /// Returns the settings as text.
    pub(crate) fn form(&self) -> String {
        format!("{} {:?}", self.encoding().name(), self.line_end)
    }

    /// Appends text in the encoding.
    pub(crate) fn append(&self, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        if self.is_utf8() {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        encode(self.encoding.0, text, out)
    }

    /// Converts what was appended as UTF-8 behind `start`.
    pub(crate) fn convert(&self, start: usize, out: &mut Vec<u8>) -> Result<(), String> {
        if self.is_utf8() {
            return Ok(());
        }
        let text = String::from_utf8(out.split_off(start)).map_err(|error| error.to_string())?;
        encode(self.encoding.0, &text, out)
    }
}
