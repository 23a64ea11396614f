//! Rows with their keys.

use diesel::RunQueryDsl;
use diesel::connection::Connection;
use diesel::deserialize::{self, QueryableByName};
use diesel::query_dsl::methods::LoadQuery;
use diesel::result::QueryResult;
use diesel::row::{Field, NamedRow, Row};

use super::decode::Decode;
use super::page::{KEY, Statement};
use super::position::Key;
use crate::record::Record;

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
        impl<T: QueryableByName<$backend>> QueryableByName<$backend> for Marked<T> {
            fn build<'a>(row: &impl NamedRow<'a, $backend>) -> deserialize::Result<Self> {
                Ok(Self { mark: mark_of(row), item: T::build(row)? })
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

/// An item with a checksum of the first column of its row: a restart recognises the row by it; `None` if the type of the column is
/// unknown.
pub(super) struct Marked<T> {
    pub(super) mark: Option<u32>,
    pub(super) item: T,
}

fn key_of<'a, DB: Decode>(row: &impl NamedRow<'a, DB>) -> deserialize::Result<Vec<Key>> {
    let mut key = Vec::new();
    // The columns of the key come last, so all others are passed over once.
    for index in 0..row.field_count() {
        let Some(field) = Row::get(row, index) else {
            continue;
        };
        if field.field_name().is_some_and(|name| name.starts_with(KEY)) {
            if let Some(reason) = field.value().as_ref().and_then(DB::unordered) {
                return Err(reason.into());
            }
            let is_decimal = field.value().as_ref().is_some_and(DB::is_decimal);
            key.push(match DB::decode(field.value(), "the key")?.into() {
                Key::Text(digits) if is_decimal => Key::Decimal(digits),
                value => value,
            });
        }
    }
    Ok(key)
}

fn mark_of<'a, DB: Decode>(row: &impl NamedRow<'a, DB>) -> Option<u32> {
    let first = Row::get(row, 0)?;
    let value = DB::decode(first.value(), "").ok()?;
    Some(super::position::mark_of(&value))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Value;

    // Spec: INPUT-09
    #[test]
    fn a_key_is_the_same_after_a_restart() {
        let values = [
            Value::Int(i64::MIN),
            Value::Float(0.1),
            Value::Text("\\x é".to_owned()),
            Value::Bytes(vec![]),
            Value::Bytes(vec![0, 0xa4, 0xff]),
        ];
        for value in values {
            let stored = serde_json::to_string(&Key::from(value.clone())).unwrap();
            let key: Key = serde_json::from_str(&stored).unwrap();
            assert_eq!(key.to_value(), value, "{stored}");
        }
        for damaged in [r#"{"Bytes":"a4"}"#, r#"{"Bytes":"\\xa"}"#, r#"{"Bytes":"\\xzz"}"#] {
            assert!(serde_json::from_str::<Key>(damaged).is_err(), "{damaged}");
        }
    }
}
