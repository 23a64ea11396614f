//! Rows with their keys.

use diesel::RunQueryDsl;
use diesel::connection::Connection;
use diesel::deserialize::{self, QueryableByName};
use diesel::query_dsl::methods::LoadQuery;
use diesel::result::QueryResult;
use diesel::row::{Field, NamedRow, Row};
use serde::{Deserialize, Serialize};

use super::decode::Decode;
use super::page::{KEY, Statement};
use crate::record::{Record, Value};

/// A type that rows of a query become: with `#[derive(QueryableByName)]` of diesel, or a [`Record`].
///
/// It is implemented for every such type on the databases whose features are enabled.
pub trait FromRow: OnSqlite + OnPostgres + OnMysql + Send + 'static {}

impl<T: OnSqlite + OnPostgres + OnMysql + Send + 'static> FromRow for T {}

macro_rules! on {
    ($($feature:literal $name:ident $backend:ty;)*) => {$(
        /// Implemented for types with `QueryableByName`, if the feature is enabled, else for all.
        #[cfg(feature = $feature)]
        pub trait $name: QueryableByName<$backend> {}

        #[cfg(feature = $feature)]
        impl<T: QueryableByName<$backend>> $name for T {}

        /// Implemented for all types: the feature is not enabled.
        #[cfg(not(feature = $feature))]
        pub trait $name {}

        #[cfg(not(feature = $feature))]
        impl<T> $name for T {}

        #[cfg(feature = $feature)]
        impl<T: QueryableByName<$backend>> QueryableByName<$backend> for Keyed<T> {
            fn build<'a>(row: &impl NamedRow<'a, $backend>) -> deserialize::Result<Self> {
                Ok(Self { key: key_of(row)?, item: T::build(row)? })
            }
        }

        #[cfg(feature = $feature)]
        impl QueryableByName<$backend> for Record {
            fn build<'a>(row: &impl NamedRow<'a, $backend>) -> deserialize::Result<Self> {
                record_of(row)
            }
        }
    )*};
}

on! {
    "sqlite" OnSqlite diesel::sqlite::Sqlite;
    "postgres" OnPostgres diesel::pg::Pg;
    "mysql" OnMysql diesel::mysql::Mysql;
}

/// An item with the key of its row.
pub(super) struct Keyed<T> {
    pub(super) key: Vec<Key>,
    pub(super) item: T,
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
    /// Bytes, as hexadecimal digits.
    Bytes(String),
}

impl Key {
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(value) | Self::Decimal(value) => Value::Text(value.clone()),
            Self::Bytes(digits) => {
                let byte = |index| u8::from_str_radix(&digits[index..index + 2], 16).unwrap_or_default();
                Value::Bytes((0..digits.len() / 2 * 2).step_by(2).map(byte).collect())
            }
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
            bytes @ Value::Bytes(_) => Self::Bytes(bytes.to_string()),
        }
    }
}

fn key_of<'a, DB: Decode>(row: &impl NamedRow<'a, DB>) -> deserialize::Result<Vec<Key>> {
    let mut key = Vec::new();
    // The columns of the key come last, so all others are passed over once.
    for index in 0..row.field_count() {
        let Some(field) = Row::get(row, index) else {
            continue;
        };
        if field.field_name().is_some_and(|name| name.starts_with(KEY)) {
            let is_decimal = field.value().as_ref().is_some_and(DB::is_decimal);
            key.push(match DB::decode(field.value(), "the key")?.into() {
                Key::Text(digits) if is_decimal => Key::Decimal(digits),
                value => value,
            });
        }
    }
    Ok(key)
}

fn record_of<'a, DB: Decode>(row: &impl NamedRow<'a, DB>) -> deserialize::Result<Record> {
    let mut record = Record::new();
    for index in 0..row.field_count() {
        let Some(field) = Row::get(row, index) else {
            continue;
        };
        let name = field.field_name().unwrap_or_default();
        if !name.starts_with(KEY) {
            if record.get(name).is_some() {
                return Err(format!("the query has two columns `{name}`; name one of them by AS").into());
            }
            record.set(name, DB::decode(field.value(), name)?);
        }
    }
    Ok(record)
}

/// Loads the rows of a statement.
pub(super) fn load<T, C>(statement: Statement, connection: &mut C) -> QueryResult<Vec<T>>
where
    C: Connection,
    Statement: RunQueryDsl<C> + for<'q> LoadQuery<'q, C, T>,
{
    statement.load(connection)
}

/// Calls `each` with the rows of a statement, as they arrive, until it returns `false`.
pub(super) fn stream<T, C, Mode>(
    statement: Statement,
    connection: &mut C,
    mut each: impl FnMut(QueryResult<T>) -> bool,
) -> QueryResult<()>
where
    C: Connection,
    Statement: RunQueryDsl<C> + for<'q> LoadQuery<'q, C, T, Mode>,
{
    for row in statement.load_iter::<T, Mode>(connection)? {
        if !each(row) {
            break;
        }
    }
    Ok(())
}
