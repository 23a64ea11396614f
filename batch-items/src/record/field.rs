//! The fields that properties name.

use batch_runtime::prelude::*;

use super::value::{Record, Value};

/// The name of a field; with a `?`, of one that records may lack.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    may_lack: bool,
}

impl Field {
    pub(super) fn named(text: &str) -> Self {
        let name = text.strip_suffix('?');
        Self {
            name: name.unwrap_or(text).to_owned(),
            may_lack: name.is_some(),
        }
    }

    /// Returns the field of a record.
    pub(super) fn of<'r>(&self, record: &'r Record) -> Result<&'r Value, MappingError> {
        match record.get(&self.name) {
            Some(value) => Ok(value),
            None if self.may_lack => Ok(&Value::Null),
            None => field(record, &self.name),
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

    /// Creates the error of a value that is not what was expected. It names the record by its first field: all of them may be confidential.
    pub(super) fn of_field(record: &Record, name: &str, expected: &str) -> Self {
        let found = record.get(name).map(Value::to_string).unwrap_or_default();
        let first = record.iter().next().filter(|(first, _)| *first != name);
        let place = first.map_or(String::new(), |(first, value)| {
            format!(" in the record with `{first}` {:?}", value.to_string())
        });
        Self(format!(
            "field `{name}`: expected {expected}, found {found:?}{place}"
        ))
    }
}

impl std::fmt::Display for MappingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MappingError {}

/// Returns a field, or the error that names the fields that there are.
pub(crate) fn field<'r>(record: &'r Record, name: &str) -> Result<&'r Value, MappingError> {
    let found = record.get(name);
    found.ok_or_else(|| missing(format!("the record has no field `{name}`"), record))
}

/// Returns the error of a field that is missing.
fn missing(cause: String, record: &Record) -> MappingError {
    let names: Vec<_> = record.iter().map(|(name, _)| format!("`{name}`")).collect();
    MappingError(format!("{cause}, but {}", names.join(", ")))
}
