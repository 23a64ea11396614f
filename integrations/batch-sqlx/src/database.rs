//! The databases of sqlx: what the statements of a destination need of them.

use batch_runtime::destination::SqlDialect;
use sqlx::{Database, Error};

/// A database of sqlx that a [`SqlxDestination`](crate::SqlxDestination) writes to: `Postgres`, `MySql` or `Sqlite`, each by a feature.
pub trait SqlxDatabase: Statements {}

/// A parameter of a statement.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Text(&'a str),
    Number(i64),
}

/// The row of a marker: fence, interval, state, session of the owner.
pub(crate) type MarkerRow = (i64, i64, String, String);

/// The statements, each with the types of its database.
pub trait Statements: Database {
    const DIALECT: SqlDialect;

    /// Executes statements without parameters.
    fn run(
        connection: &mut Self::Connection,
        statements: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Executes one statement, and returns the number of changed rows.
    fn execute(
        connection: &mut Self::Connection,
        statement: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Selects a marker.
    fn marker(
        connection: &mut Self::Connection,
        select: &str,
        key: &str,
    ) -> impl Future<Output = Result<Option<MarkerRow>, Error>> + Send;

    /// Selects the ids of the sessions with a name.
    fn sessions(
        connection: &mut Self::Connection,
        find: &str,
        name: &str,
    ) -> impl Future<Output = Result<Vec<Option<i64>>, Error>> + Send;
}

/// Implements the statements: the types of sqlx have no bounds in common that a generic function could name in short.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
macro_rules! database {
    ($database:ty, $dialect:ident) => {
        impl SqlxDatabase for $database {}

        impl Statements for $database {
            const DIALECT: SqlDialect = SqlDialect::$dialect;

            async fn run(connection: &mut Self::Connection, statements: &str) -> Result<(), Error> {
                let statements = sqlx::AssertSqlSafe(statements);
                sqlx::raw_sql(statements).execute(connection).await?;
                Ok(())
            }

            async fn execute(
                connection: &mut Self::Connection,
                statement: &str,
                values: &[Value<'_>],
            ) -> Result<u64, Error> {
                let mut query = sqlx::query(sqlx::AssertSqlSafe(statement));
                for value in values {
                    query = match *value {
                        Value::Text(text) => query.bind(text),
                        Value::Number(number) => query.bind(number),
                    };
                }
                Ok(query.execute(connection).await?.rows_affected())
            }

            async fn marker(
                connection: &mut Self::Connection,
                select: &str,
                key: &str,
            ) -> Result<Option<MarkerRow>, Error> {
                let select = sqlx::query_as(sqlx::AssertSqlSafe(select)).bind(key);
                select.fetch_optional(connection).await
            }

            async fn sessions(
                connection: &mut Self::Connection,
                find: &str,
                name: &str,
            ) -> Result<Vec<Option<i64>>, Error> {
                let find = sqlx::query_scalar(sqlx::AssertSqlSafe(find)).bind(name);
                find.fetch_all(connection).await
            }
        }
    };
}

#[cfg(feature = "postgres")]
database!(sqlx::Postgres, Postgres);
#[cfg(feature = "mysql")]
database!(sqlx::MySql, Mysql);
#[cfg(feature = "sqlite")]
database!(sqlx::Sqlite, Sqlite);
