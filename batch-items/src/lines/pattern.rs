//! Lines whose fields a regular expression finds.

use std::str::FromStr;

use batch_runtime::BatchArtifact;
use csv::StringRecord;
use regex::Regex;
use serde::de::DeserializeOwned;

use super::records::{LineFormat, LineRecords};
use crate::error::{Origin, ReadError};
use crate::file::{FileItemReader, Format, Items, OpenFile, Place, Records};
use crate::rows::from_row;

/// Reads lines whose fields a regular expression finds, such as the lines of a log, as items of type `T`.
///
/// It has the properties of [`FileInput`](crate::file::FileInput), and:
///
/// | property | default | |
/// |---|---|---|
/// | `pattern` | required | a regular expression of the crate `regex`; it has to match the whole line. Its named groups are the fields, or all groups if none has a name |
/// | `if.no.match` | `fail` | `skip`: lines that do not match are not read; otherwise they are a [`RecordError`](crate::RecordError) |
/// | `comment` | none | lines that begin with this character are not read |
/// | `blank.lines` | `skip` | `read`: an empty line is a record |
///
/// A group whose name nearly matches an `Option` field without a group is a [`ResourceError`](crate::ResourceError).
///
/// ```
/// use batch_items::PatternItemReader;
/// use batch_runtime::prelude::*;
///
/// // pattern = ^(?<host>\S+) .* (?<status>\d{3})$
/// #[derive(serde::Deserialize)]
/// struct Request {
///     host: String,
///     status: u16,
/// }
///
/// #[item_reader("RequestReader")]
/// type RequestReader = PatternItemReader<Request>;
/// ```
pub type PatternItemReader<T> = FileItemReader<Pattern, T>;

/// The format of a reader with a pattern.
#[derive(BatchArtifact)]
pub struct Pattern {
    /// A regular expression of the crate `regex`; it has to match the whole line. Its named groups are the fields, or all groups if none
    /// has a name.
    #[batch_property(name = "pattern")]
    pattern: RegexText,
    /// `skip`: lines that do not match are not read; otherwise they are a `RecordError`.
    #[batch_property(name = "if.no.match", value = "fail")]
    if_no_match: IfNoMatch,
    #[batch_artifact]
    lines: LineFormat,
}

/// What becomes of a line that does not match: the property `if.no.match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfNoMatch {
    /// `fail`: it is a bad record.
    Fail,
    /// `skip`: it is not read.
    Skip,
}

crate::choices! {
    IfNoMatch { "fail" => Fail, "skip" => Skip }
}

#[derive(Clone)]
struct RegexText(Regex);

impl FromStr for RegexText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Regex::new(text).map_err(|error| error.to_string())?;
        // What it did not match would be lost. A pattern that ends with a comment needs a line end.
        let whole = |end: &str| Regex::new(&format!("^(?:{text}{end})$"));
        let pattern = whole("").or_else(|_| whole("\n"));
        let pattern = pattern.map_err(|error| error.to_string())?;
        if pattern.captures_len() == 1 {
            return Err("the pattern has no groups; a field is a group such as `(?<name>..)`".to_owned());
        }
        Ok(Self(pattern))
    }
}

impl Format for Pattern {
    type Records = PatternRecords;

    fn start(&self, file: OpenFile<'_>) -> Result<PatternRecords, ReadError> {
        let lines = self.lines.start(&file)?;
        let pattern = self.pattern.0.clone();
        let groups = pattern.capture_names().enumerate().skip(1);
        let named: Vec<(usize, &str)> = groups.filter_map(|(index, name)| Some((index, name?))).collect();
        let (groups, names) = if named.is_empty() {
            ((1..pattern.captures_len()).collect(), None)
        } else {
            let names = named.iter().map(|(_, name)| *name).chain(lines.added_names());
            (
                named.iter().map(|(index, _)| *index).collect(),
                Some(names.collect()),
            )
        };
        Ok(PatternRecords {
            groups,
            names,
            locations: pattern.capture_locations(),
            pattern,
            skips: self.if_no_match == IfNoMatch::Skip,
            row: StringRecord::new(),
            lines,
        })
    }

    fn other_lines(&self) -> Option<u64> {
        Some(0)
    }
}

/// The lines of a file, as rows.
pub struct PatternRecords {
    lines: LineRecords,
    pattern: Regex,
    /// The groups that are fields.
    groups: Vec<usize>,
    names: Option<StringRecord>,
    locations: regex::CaptureLocations,
    skips: bool,
    row: StringRecord,
}

impl Records for PatternRecords {
    fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            if !self.lines.advance()? {
                return Ok(false);
            }
            let text = self.lines.text();
            if self.pattern.captures_read(&mut self.locations, text).is_some() {
                break;
            }
            if !self.skips {
                return Err(self.lines.bad("the line does not match the pattern", None));
            }
        }
        self.row.clear();
        for group in &self.groups {
            let range = self.locations.get(*group);
            let field = range.map_or("", |(start, end)| &self.lines.text()[start..end]);
            self.row.push_field(field);
        }
        self.lines.add_to(&mut self.row);
        Ok(true)
    }

    fn place(&self) -> Place {
        self.lines.place()
    }

    fn origin(&self) -> Origin<'_> {
        self.lines.origin()
    }
}

impl<T: DeserializeOwned> Items<T> for PatternRecords {
    fn check(&self) -> Result<(), ReadError> {
        let names = self.names.as_ref();
        names.map_or(Ok(()), |names| self.lines.check_names::<T>(names))
    }

    fn item(&mut self) -> Result<T, ReadError> {
        let names = self.names.as_ref();
        from_row(names, &self.row).map_err(|error| self.lines.bad_row(error, names, &self.row))
    }
}
