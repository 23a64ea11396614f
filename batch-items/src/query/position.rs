//! The checkpoint of the reader of a query.

use serde::{Deserialize, Serialize};

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
    pub(super) fn to_value(&self) -> Value {
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
