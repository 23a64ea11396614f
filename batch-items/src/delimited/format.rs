//! The properties of delimited files.

use std::str::FromStr;

use batch_runtime::BatchArtifact;

use super::split::Characters;
use crate::choices;

/// The form of delimited rows.
///
/// The reader and the writer of delimited files have these properties:
///
/// | property | default | |
/// |---|---|---|
/// | `delimiter` | `,` | the character between two fields; `tab` or `\t` for a tab |
/// | `quote` | `"` | the character around a field that contains delimiters, quotes or line ends; `none` disables quotes |
/// | `escape` | none | the character before a quote within quotes; without it, a quote is doubled |
///
/// The reader:
///
/// | property | default | |
/// |---|---|---|
/// | `columns` | none | the names of the fields, separated by commas, of a file without a header line; a first row with one of these names, in upper or lower case, is an error |
/// | `header` | `true` without `columns` | `false`: the first line is data, whatever it contains; the fields are found by `columns`, or by their order |
/// | `comment` | none | lines that begin with this character are not read |
/// | `trim` | `false` | `true` removes blanks around fields |
/// | `strict` | `true` | `false` accepts rows with missing or additional fields, text after a closing quote, files that share no column with the first one, and a header of one column that contains `,`, `;`, `\|` or a tab outside of quotes |
#[derive(BatchArtifact)]
pub struct DelimitedFormat {
    #[batch_property(name = "delimiter", value = ",")]
    pub(super) delimiter: Character,
    #[batch_property(name = "quote", value = "\"")]
    pub(super) quote: OrNone,
    #[batch_property(name = "escape")]
    pub(super) escape: Option<Character>,
}

/// The properties of the reader only.
#[derive(BatchArtifact, Default)]
pub(super) struct RowFormat {
    /// The names of the fields, separated by commas, of a file without a header line; a first row with one of these names, in upper or
    /// lower case, is an error.
    #[batch_property(name = "columns")]
    pub(super) columns: Vec<String>,
    /// `false`: the first line is data, whatever it contains; the fields are found by `columns`, or by their order. The default is `true`
    /// without `columns`.
    #[batch_property(name = "header")]
    pub(super) header: Option<bool>,
    /// Lines that begin with this character are not read.
    #[batch_property(name = "comment")]
    pub(super) comment: Option<Character>,
    /// `true` removes blanks around fields.
    #[batch_property(name = "trim", value = "false")]
    pub(super) trim: bool,
    /// `false` accepts rows with missing or additional fields, text after a closing quote, files that share no column with the first one,
    /// and a header of one column that contains `,`, `;`, `|` or a tab outside of quotes.
    #[batch_property(name = "strict", value = "true")]
    pub(super) strict: bool,
}

/// How a writer quotes fields: the property `quotes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuoteMode {
    /// `necessary`: fields that contain a delimiter, a quote or a line end. The default.
    #[default]
    Necessary,
    /// `always`: all fields.
    Always,
    /// `text`: all fields that are not numbers.
    Text,
    /// `never`: no field, even if it cannot be read again.
    Never,
}

choices! {
    QuoteMode { "necessary" => Necessary, "always" => Always, "text" => Text, "never" => Never }
}

/// A character of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Character(pub(crate) u8);

/// A character, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrNone(pub(super) Option<u8>);

/// Returns another delimiter that a name contains. A comma before a blank is punctuation.
pub(super) fn other_delimiter(name: &str, delimiter: u8) -> Option<char> {
    let is_other = |c: &char| [',', ';', '\t', '|'].contains(c) && *c != char::from(delimiter);
    name.replace(", ", " ").chars().find(is_other)
}

impl FromStr for Character {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.as_bytes()) {
            ("tab" | "\\t", _) => Ok(Self(b'\t')),
            (_, [character]) if !matches!(character, b'\n' | b'\r') => Ok(Self(*character)),
            _ => Err("expected one ASCII character, or `tab`".to_owned()),
        }
    }
}

impl FromStr for OrNone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => match text.parse() {
                Ok(Character(character)) => Ok(Self(Some(character))),
                Err(_) => Err("expected one ASCII character, or `none`".to_owned()),
            },
        }
    }
}

impl DelimitedFormat {
    /// Fails if a character has two meanings.
    pub(super) fn check(&self, comment: Option<Character>) -> Result<(), String> {
        let meanings = [
            ("delimiter", Some(self.delimiter)),
            ("quote", self.quote.0.map(Character)),
            ("escape", self.escape),
            ("comment", comment),
        ];
        for (index, (name, character)) in meanings.iter().enumerate() {
            let earlier = meanings[..index].iter().find(|(_, earlier)| earlier == character);
            if let (Some((other, _)), true) = (earlier, character.is_some()) {
                return Err(format!("`{other}` and `{name}` are the same character"));
            }
        }
        Ok(())
    }

    pub(super) fn characters(&self, rows: &RowFormat) -> Characters {
        Characters {
            delimiter: self.delimiter.0,
            quote: self.quote.0,
            escape: self.escape.map(|Character(escape)| escape),
            comment: rows.comment.map(|Character(comment)| comment),
            trim: rows.trim,
        }
    }
}
