//! The fields that properties name.

use std::sync::atomic::{AtomicUsize, Ordering};

use batch_runtime::prelude::*;

use super::value::{Record, Value};

/// Marks the field with the value of a total: a field of a record may be called `count()`, too.
pub(super) const TOTAL: char = '\u{ffff}';

/// The name of a field; with a `?`, of one that records may lack.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) may_lack: bool,
    /// Where the field was in the last record. Others may have it elsewhere.
    last: AtomicUsize,
}

impl Field {
    pub(super) fn new(name: String, may_lack: bool) -> Self {
        Self {
            name,
            may_lack,
            last: AtomicUsize::new(0),
        }
    }

    /// Returns the field of a record.
    pub(super) fn of<'r>(&self, record: &'r Record) -> Result<&'r Value, MappingError> {
        match record.find(&self.name, self.last.load(Ordering::Relaxed)) {
            Some((at, value)) => {
                self.last.store(at, Ordering::Relaxed);
                Ok(value)
            }
            None if self.may_lack => Ok(&Value::Null),
            None => Err(missing(record, &self.name)),
        }
    }
}

/// A record without a field that a property names, or whose field has another type.
#[derive(Debug, BatchException)]
pub struct MappingError(String);

impl MappingError {
    pub(super) fn new(cause: String) -> Self {
        Self(cause)
    }

    /// Creates the error of a value that is not what was expected.
    pub(super) fn of_field(record: &Record, name: &str, expected: &str) -> Self {
        let found = record.get(name).map(Value::shown).unwrap_or_default();
        let place = place(record, name);
        Self(format!(
            "field `{name}`: expected {expected}, found {found}{place}"
        ))
    }

    /// Adds what a word without quotes may have been meant as.
    #[cold]
    pub(super) fn with_hint(self, written: &str, name: &str) -> Self {
        Self(format!(
            "{}; write `{written}?` if records may lack it, and `'{name}'` for the text",
            self.0
        ))
    }

    /// Creates the error of a field that the records of a group do not share.
    #[cold]
    pub(super) fn differs(name: &str, first: &Record, other: &Record) -> Self {
        let shown = |record: &Record| match record.get(name) {
            None | Some(Value::Null) => "null".to_owned(),
            Some(value) => value.shown(),
        };
        Self(format!(
            "field `{name}` is {} and {} in one group{}; use a total, such as `max({name})`, or add it to the key of the group",
            shown(first),
            shown(other),
            place(first, name)
        ))
    }

    /// Creates the error of a record, which is named by its first field.
    pub(super) fn of_record(record: &Record, cause: String) -> Self {
        Self(cause + &place(record, ""))
    }
}

/// Returns the first field of a record, unless the error names it already.
fn place(record: &Record, named: &str) -> String {
    let first = record.first_field(named);
    first.map_or(String::new(), |first| format!(" in the record with {first}"))
}

impl std::fmt::Display for MappingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MappingError {}

/// Returns the error of a field that is missing.
#[cold]
fn missing(record: &Record, name: &str) -> MappingError {
    // Totals are fields that no record has.
    let names = record.iter().filter(|(name, _)| !name.starts_with(TOTAL));
    let names: Vec<_> = names.map(|(name, _)| format!("`{name}`")).collect();
    MappingError(format!(
        "the record has no field `{name}`, but {}",
        names.join(", ")
    ))
}
