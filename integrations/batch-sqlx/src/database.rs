//! The databases of sqlx: what the statements of a destination need of them.

use batch_runtime::destination::{SqlDialect, SqlValue};
use sqlx::{Connection, Database, Error};

/// A database of sqlx that a [`SqlxDestination`](crate::SqlxDestination) writes to: `Postgres`, `MySql` or `Sqlite`, each by a feature.
pub trait SqlxDatabase: Statements {}

/// The columns of a marker: fence, interval, state, session of the owner.
pub(crate) type Columns = (i64, i64, String, String);

/// The statements, each with the types of its database.
pub trait Statements: Database {
    const DIALECT: SqlDialect;

    /// Returns the name of the database, or the path of the file.
    fn database_name(options: &<Self::Connection as Connection>::Options) -> String;

    /// Executes statements without parameters.
    fn run_statements(
        connection: &mut Self::Connection,
        statements: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Executes one statement, and returns the number of changed rows.
    fn execute_with(
        connection: &mut Self::Connection,
        statement: &str,
        values: &[SqlValue<'_>],
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Selects a marker.
    fn select_marker(
        connection: &mut Self::Connection,
        select: &str,
        key: &str,
    ) -> impl Future<Output = Result<Option<Columns>, Error>> + Send;

    /// Selects the ids of the sessions with a name.
    fn select_sessions(
        connection: &mut Self::Connection,
        find: &str,
        name: &str,
    ) -> impl Future<Output = Result<Vec<Option<i64>>, Error>> + Send;
}

/// Implements the statements for a database. A generic implementation would repeat a dozen bounds on the types of sqlx at each use.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
macro_rules! database {
    ($database:ty, $dialect:ident, $options:ident => $name:expr) => {
        impl SqlxDatabase for $database {}

        impl Statements for $database {
            const DIALECT: SqlDialect = SqlDialect::$dialect;

            fn database_name($options: &<Self::Connection as Connection>::Options) -> String {
                $name
            }

            async fn run_statements(
                connection: &mut Self::Connection,
                statements: &str,
            ) -> Result<(), Error> {
                let statements = sqlx::AssertSqlSafe(statements);
                sqlx::raw_sql(statements).execute(connection).await?;
                Ok(())
            }

            async fn execute_with(
                connection: &mut Self::Connection,
                statement: &str,
                values: &[SqlValue<'_>],
            ) -> Result<u64, Error> {
                let mut query = sqlx::query(sqlx::AssertSqlSafe(statement));
                for value in values {
                    query = match *value {
                        SqlValue::Text(text) => query.bind(text),
                        SqlValue::Number(number) => query.bind(number),
                    };
                }
                Ok(query.execute(connection).await?.rows_affected())
            }

            async fn select_marker(
                connection: &mut Self::Connection,
                select: &str,
                key: &str,
            ) -> Result<Option<Columns>, Error> {
                let select = sqlx::query_as(sqlx::AssertSqlSafe(select)).bind(key);
                select.fetch_optional(connection).await
            }

            async fn select_sessions(
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
database!(sqlx::Postgres, POSTGRES, options => options.get_database().unwrap_or_default().to_owned());
#[cfg(feature = "mysql")]
database!(sqlx::MySql, MYSQL, options => options.get_database().unwrap_or_default().to_owned());
#[cfg(feature = "sqlite")]
database!(sqlx::Sqlite, SQLITE, options => options.get_filename().display().to_string());
