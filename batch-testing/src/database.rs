//! The database of a test: statements of the test, and whole tables as text.

use std::fmt;

use batch_runtime::repository::{DatabaseConnection, RepositoryUrl};
use batch_runtime::{JobOperator, RepositoryConnection};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;

/// A connection to the database of a test's repository, where artifacts may keep their own tables.
///
/// The methods panic if a statement fails.
pub struct TestDatabase {
    connection: RepositoryConnection,
}

/// Creates the tables that a test needs.
pub(crate) type Prepare = dyn Fn(&mut TestDatabase) + Send + Sync;

/// The rows of a table, each as a text.
pub(crate) struct TableRows {
    pub(crate) table: String,
    /// In the order of their texts.
    pub(crate) rows: Vec<String>,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    text: String,
}

impl TestDatabase {
    #[track_caller]
    pub(crate) fn of(operator: &JobOperator) -> Self {
        match operator.connect() {
            Ok(connection) => Self::new(connection),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn new(connection: RepositoryConnection) -> Self {
        Self { connection }
    }

    /// Connects to a database, without creating the tables of a repository.
    pub(crate) fn open(url: &RepositoryUrl) -> Result<Self, String> {
        let connection = url.connect().map_err(|error| error.to_string())?;
        Ok(Self::new(connection))
    }

    /// Returns the connection, for statements of diesel.
    pub fn connection(&mut self) -> &mut RepositoryConnection {
        &mut self.connection
    }

    /// Runs statements, such as a script.
    #[track_caller]
    pub fn execute(&mut self, statements: &str) {
        if let Err(error) = self.try_execute(statements) {
            panic!("cannot execute `{statements}`: {error}");
        }
    }

    pub(crate) fn try_execute(&mut self, statements: &str) -> QueryResult<()> {
        match self.connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite(connection) => connection.batch_execute(statements),
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(connection) => connection.batch_execute(statements),
            #[cfg(feature = "mysql")]
            DatabaseConnection::Mysql(connection) => connection.batch_execute(statements),
            #[allow(
                unreachable_patterns,
                reason = "batch-runtime may have more databases than this crate"
            )]
            _ => Err(unsupported()),
        }
    }

    /// Returns the number of rows of a table.
    #[track_caller]
    pub fn count(&mut self, table: &str) -> i64 {
        let count = match self.connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite(_) => {
                format!("SELECT CAST(COUNT(*) AS TEXT) AS text FROM \"{table}\"")
            }
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(_) => format!("SELECT COUNT(*)::text AS text FROM \"{table}\""),
            #[allow(unreachable_patterns, reason = "MySQL is a feature")]
            _ => format!("SELECT CAST(COUNT(*) AS CHAR) AS text FROM `{table}`"),
        };
        let rows = self.select(&count);
        rows.first().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Returns the rows of a table, each as a text of its values in SQL, in the order of these texts.
    #[track_caller]
    pub fn rows(&mut self, table: &str) -> Vec<String> {
        self.rows_of(table, &[]).rows
    }

    /// Returns the rows of a table as [`rows`](Self::rows) does, without some columns.
    #[track_caller]
    pub fn rows_without(&mut self, table: &str, columns: &[&str]) -> Vec<String> {
        let ignored: Vec<_> = columns.iter().map(|column| format!("{table}.{column}")).collect();
        self.check_ignored(&ignored);
        self.rows_of(table, &ignored).rows
    }

    /// Panics if a column, `table.column`, or a table does not exist.
    #[track_caller]
    pub(crate) fn check_ignored(&mut self, ignored: &[String]) {
        let tables = self.table_names();
        for name in ignored {
            let (table, column) = match name.split_once('.') {
                Some((table, column)) => (table, Some(column)),
                None => (name.as_str(), None),
            };
            assert!(
                tables.iter().any(|found| found == table),
                "there is no table `{table}` to ignore"
            );
            if let Some(column) = column {
                let found = self.columns(table).iter().any(|found| found == column);
                assert!(found, "there is no column `{name}` to ignore");
            }
        }
    }

    /// Returns the step that the first of several executions started last, of the repository with this prefix of its tables.
    pub(crate) fn last_step_of_first_execution(&mut self, prefix: &str) -> Option<String> {
        let names = self.select(&format!(
            "SELECT STEP_NAME AS text FROM {prefix}STEP_EXECUTION \
             WHERE JOB_EXECUTION_ID = (SELECT MIN(JOB_EXECUTION_ID) FROM {prefix}JOB_EXECUTION) \
             AND (SELECT COUNT(*) FROM {prefix}JOB_EXECUTION) > 1 ORDER BY STEP_EXECUTION_ID DESC",
        ));
        // A partition has the name of its step, a colon and its number.
        let name = names.first()?.split(':').next()?;
        Some(name.to_owned())
    }

    /// Returns the rows of all tables but some, without some tables and columns, `table.column`.
    #[track_caller]
    pub(crate) fn tables(&mut self, without: &[String], ignored: &[String]) -> Vec<TableRows> {
        let mut names = self.table_names();
        names.retain(|name| !without.contains(name) && !ignored.contains(name));
        names.iter().map(|name| self.rows_of(name, ignored)).collect()
    }

    /// Returns the names of all tables.
    #[track_caller]
    pub(crate) fn table_names(&mut self) -> Vec<String> {
        let query = match self.connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite(_) => {
                "SELECT name AS text FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            }
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(_) => {
                "SELECT table_name::text AS text FROM information_schema.tables \
                 WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
            }
            #[allow(unreachable_patterns, reason = "MySQL is a feature")]
            _ => {
                "SELECT CAST(table_name AS CHAR) AS text FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
            }
        };
        let mut names = self.select(query);
        names.sort();
        names
    }

    /// Returns the names of a table's columns.
    #[track_caller]
    fn columns(&mut self, table: &str) -> Vec<String> {
        let query = match self.connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite(_) => format!("SELECT name AS text FROM pragma_table_info('{table}')"),
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(_) => format!(
                "SELECT column_name::text AS text FROM information_schema.columns \
                 WHERE table_schema = current_schema() AND table_name = '{table}' ORDER BY ordinal_position"
            ),
            #[allow(unreachable_patterns, reason = "MySQL is a feature")]
            _ => format!(
                "SELECT CAST(column_name AS CHAR) AS text FROM information_schema.columns \
                 WHERE table_schema = DATABASE() AND table_name = '{table}' ORDER BY ordinal_position"
            ),
        };
        self.select(&query)
    }

    #[track_caller]
    fn rows_of(&mut self, table: &str, ignored: &[String]) -> TableRows {
        let mut columns = self.columns(table);
        assert!(!columns.is_empty(), "there is no table `{table}`");
        columns.retain(|column| !ignored.contains(&format!("{table}.{column}")));
        assert!(!columns.is_empty(), "all columns of table `{table}` are ignored");
        let query = match self.connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite(_) => {
                let values: Vec<_> = columns
                    .iter()
                    .map(|column| format!("quote(\"{column}\")"))
                    .collect();
                format!("SELECT {} AS text FROM \"{table}\"", values.join(" || ', ' || "))
            }
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(_) => {
                let values: Vec<_> = columns
                    .iter()
                    .map(|column| format!("quote_nullable(\"{column}\"::text)"))
                    .collect();
                format!(
                    "SELECT concat_ws(', ', {}) AS text FROM \"{table}\"",
                    values.join(", ")
                )
            }
            #[allow(unreachable_patterns, reason = "MySQL is a feature")]
            _ => {
                let values: Vec<_> = columns
                    .iter()
                    .map(|column| format!("QUOTE(`{column}`)"))
                    .collect();
                format!(
                    "SELECT CAST(CONCAT_WS(', ', {}) AS CHAR) AS text FROM `{table}`",
                    values.join(", ")
                )
            }
        };
        let mut rows = self.select(&query);
        rows.sort();
        TableRows {
            table: table.to_owned(),
            rows,
        }
    }

    /// Returns the column `text` of a query.
    #[track_caller]
    fn select(&mut self, query: &str) -> Vec<String> {
        match self.try_select(query) {
            Ok(rows) => rows,
            Err(error) => panic!("cannot execute `{query}`: {error}"),
        }
    }

    /// Returns the column `text` of a query.
    pub(crate) fn try_select(&mut self, query: &str) -> QueryResult<Vec<String>> {
        let statement = diesel::sql_query(query);
        let rows: Vec<Row> = match self.connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite(connection) => statement.load(connection),
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(connection) => statement.load(connection),
            #[cfg(feature = "mysql")]
            DatabaseConnection::Mysql(connection) => statement.load(connection),
            #[allow(
                unreachable_patterns,
                reason = "batch-runtime may have more databases than this crate"
            )]
            _ => Err(unsupported()),
        }?;
        Ok(rows.into_iter().map(|row| row.text).collect())
    }
}

impl fmt::Debug for TestDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestDatabase")
    }
}

#[allow(dead_code, reason = "all databases may be compiled in")]
fn unsupported() -> diesel::result::Error {
    diesel::result::Error::QueryBuilderError(
        "batch-testing is built without this database; enable its feature `sqlite`, `postgres` or `mysql`"
            .into(),
    )
}
