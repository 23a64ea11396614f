//! The checkpoint of the reader of a query.

use serde::{Deserialize, Serialize};

use super::error::QueryError;
use super::parameters::Query;
use crate::record::Value;

/// The checkpoint of a query's reader.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryPosition {
    /// The number of rows that were read.
    pub rows: u64,
    /// The key of the last one, if the reader has a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Vec<Key>>,
    /// A checksum of the first column of the last row, if the reader has no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// What this is a position in; `None` in checkpoints of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<QueryOrder>,
}

impl QueryPosition {
    /// Checks that this is a position in the rows of a query, in the order of its key, and becomes one.
    ///
    /// # Errors
    /// If it is one in other rows.
    pub fn check(&mut self, order: QueryOrder) -> Result<(), QueryError> {
        let has_key = self.key.is_some();
        let change = match self.of.replace(order.clone()) {
            _ if self.rows == 0 => None,
            Some(before) if before.key != order.key => {
                let shown = |key: &[String]| match key {
                    [] => "no `key`".to_owned(),
                    columns => format!("the `key` `{}`", columns.join(", ")),
                };
                Some(format!(
                    "it had {}, and has {}",
                    shown(&before.key),
                    shown(&order.key)
                ))
            }
            None if has_key == order.key.is_empty() => Some("its `key` was added or removed".to_owned()),
            Some(before) if before.query != order.query => Some("its text is another".to_owned()),
            _ => None,
        };
        let Some(change) = change else { return Ok(()) };
        let cause = format!(
            "the query has changed since the checkpoint, whose position is one in other rows: {change}; restore it to resume, or start a \
             new job instance"
        );
        Err(QueryError::new("resume the query", cause))
    }
}

impl QueryOrder {
    /// Returns the order of the rows of a query.
    pub fn new(key: &[String], query: &Query) -> Self {
        Self {
            key: key.to_vec(),
            query: crc32fast::hash(query.to_string().as_bytes()),
        }
    }
}

/// Returns the error of rows with keys that are equal in the database.
pub fn not_unique(key: &[String], equal: &[&Vec<Key>]) -> QueryError {
    let shown = |key: &&Vec<Key>| {
        let values: Vec<_> = key.iter().map(|value| value.to_value().to_string()).collect();
        format!("{values:?}")
    };
    let mut shown: Vec<_> = equal.iter().map(shown).collect();
    shown.dedup();
    let cause = format!(
        "the key `{}` is not unique: two rows have {}; add a column to it",
        key.join(", "),
        shown.join(" and ")
    );
    QueryError::new("read the query", cause)
}

/// Returns the error of rows without a key.
pub fn without_key(key: &[String], rows: i64) -> QueryError {
    let cause = format!(
        "the key `{}` is null in {rows} rows, which would not be read; exclude them in the query",
        key.join(", ")
    );
    QueryError::new("read the query", cause)
}

/// Returns a checksum of the first column of a row: a restart recognises the row by it.
pub fn mark_of(value: &Value) -> u32 {
    match value {
        Value::Null => 0,
        Value::Bool(value) => crc32fast::hash(&[u8::from(*value)]),
        Value::Int(value) => crc32fast::hash(&value.to_le_bytes()),
        Value::Float(value) => crc32fast::hash(&value.to_le_bytes()),
        Value::Text(text) | Value::Json(text) | Value::Decimal(text) => crc32fast::hash(text.as_bytes()),
        Value::Bytes(bytes) => crc32fast::hash(bytes),
    }
}

/// The rows of a query without a key that a restart passes over.
#[derive(Clone, Debug)]
pub struct Passing {
    rows: u64,
    left: u64,
    /// The mark of the last of these rows, as it was read before the restart.
    last: Option<u32>,
}

impl Passing {
    /// Passes over the rows that were read before a position.
    pub fn to(position: &QueryPosition) -> Self {
        Self {
            rows: position.rows,
            left: position.rows,
            last: position.last,
        }
    }

    /// Returns whether the next row is one of them.
    pub fn is_left(&self) -> bool {
        self.left > 0
    }

    /// Passes over a row with this mark.
    ///
    /// # Errors
    /// If it is the last one, and another than before.
    pub fn pass(&mut self, mark: Option<u32>) -> Result<(), QueryError> {
        self.left -= 1;
        match self.left {
            0 if self.last.is_some() && self.last != mark => {
                Err(self.changed("the last of them has another value in its first column"))
            }
            _ => Ok(()),
        }
    }

    /// Ends the rows.
    ///
    /// # Errors
    /// If the query returned fewer rows.
    pub fn end(&self) -> Result<(), QueryError> {
        match self.left {
            0 => Ok(()),
            left => Err(self.changed(&format!("the query returns {}", self.rows - left))),
        }
    }

    fn changed(&self, how: &str) -> QueryError {
        let cause = format!(
            "its rows have changed since the checkpoint, at which {} were read: {how}; a restart passes over them by their number, so \
             others would not be read; set `key` to the columns of a unique key, and start a new job instance for the rest",
            self.rows
        );
        QueryError::new("resume the query", cause)
    }
}

/// The rows of a query in their order; a restart recognises them by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryOrder {
    /// The columns of the key; none without a key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// The CRC-32 of the query, without the values of its parameters.
    pub query: u32,
}

/// A value of a key, in a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Key {
    /// Null, which a key must not be.
    Null,
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text, also of a date or a UUID.
    Text(String),
    /// A decimal of MySQL, or an integer that is not an `i64`.
    Decimal(String),
    /// Bytes.
    Bytes(#[serde(with = "digits")] Vec<u8>),
}

impl Key {
    /// Returns the value for a comparison.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(value) | Self::Decimal(value) => Value::Text(value.clone()),
            Self::Bytes(bytes) => Value::Bytes(bytes.clone()),
        }
    }
}

impl From<Value> for Key {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Int(i64::from(value)),
            Value::Int(value) => Self::Int(value),
            Value::Float(value) => Self::Float(value),
            Value::Text(value) | Value::Json(value) | Value::Decimal(value) => Self::Text(value),
            Value::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

/// Bytes as hexadecimal digits.
mod digits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::record::Value;
    use crate::rows::bytes_of;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        Value::Bytes(bytes.to_vec()).to_string().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let bytes = digits.starts_with("\\x").then(|| bytes_of(&digits)).flatten();
        bytes.ok_or_else(|| D::Error::custom("a key of bytes begins with `\\x` and has hexadecimal digits"))
    }
}
