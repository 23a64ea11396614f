//! A database of ODBC as a destination.
// Spec: ODBC-05, MARK-02, MARK-08, MARK-11

use batch_runtime::BatchError;
use batch_runtime::destination::{
    ConnectError, ConnectionString, Marker, MarkerRow, Markers, SqlDestination, SqlDialect, SqlValue,
    TransactionEnd, forget_markers,
};

use crate::connection::OdbcConnection;
use crate::dialect::Dialect;
use crate::error::OdbcError;
use crate::parameters::{self, Parameter};

/// A database that a writer writes to exactly once by ODBC.
///
/// The writer returns it from its `#[destination]` method. `#[write_items]` takes an [`OdbcConnection`], and neither commits its transaction
/// nor rolls it back. The table `BATCH_MARKER` is created in the database when a step first needs it, or by an administrator.
/// [`Destination`](batch_runtime::destination::Destination) says what a crash does at each moment.
///
/// On PostgreSQL and MySQL a new owner of a step ends the session of the previous one, whose process may be suspended. On other
/// databases it waits for the locks of such a session.
///
/// ```
/// use batch_odbc::{OdbcConnection, OdbcDestination};
/// use batch_runtime::destination::DatabaseName;
/// use batch_runtime::prelude::*;
/// use odbc_api::IntoParameter;
///
/// #[derive(BatchArtifact)]
/// struct Postings {
///     #[batch_property]
///     database: DatabaseName,
///     #[batch_context]
///     job: JobContext,
/// }
///
/// #[item_writer("Postings")]
/// impl Postings {
///     #[destination]
///     fn database(&self) -> Result<OdbcDestination, BatchError> {
///         Ok(OdbcDestination::new(self.job.connection_string(&self.database)?))
///     }
///
///     #[write_items]
///     fn post(&mut self, cents: &[i64], tx: &mut OdbcConnection) -> Result<(), BatchError> {
///         for cents in cents {
///             tx.odbc().execute("INSERT INTO POSTING VALUES (?)", &cents.into_parameter(), None)?;
///         }
///         Ok(())
///     }
/// }
/// ```
pub struct OdbcDestination {
    string: ConnectionString,
    table: String,
    /// Of the dialect that the last connection has had.
    markers: Markers,
    /// `None` before the first use, and after a loss.
    connection: Option<OdbcConnection>,
}

impl OdbcDestination {
    /// Creates the destination of a connection string, which
    /// [`JobContext::connection_string`](batch_runtime::context::JobContext::connection_string) returns. Connects later.
    pub fn new(string: ConnectionString) -> Self {
        Self::with_table(string, Markers::TABLE)
    }

    /// Creates the destination with another name of the table of its markers, which may have a schema before it. Repositories
    /// that run jobs of the same name into one database need separate tables.
    pub fn with_table(string: ConnectionString, table: impl Into<String>) -> Self {
        let table = table.into();
        Self {
            string,
            markers: Markers::new(SqlDialect::SQLITE, table.clone()),
            table,
            connection: None,
        }
    }

    fn connected(&self) -> Result<&OdbcConnection, OdbcError> {
        let connection = self.connection.as_ref();
        connection.ok_or_else(|| OdbcError::new("the destination is not connected"))
    }

    /// Returns whether transactions begin and end by statements of SQL. If not, the driver begins them.
    fn begins_by_sql(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| !connection.dialect().markers.begin.is_empty())
    }
}

fn parameter<'v>(value: SqlValue<'v>, dialect: &Dialect) -> Parameter<'v> {
    match value {
        SqlValue::Text(text) => parameters::text(text, None, dialect),
        SqlValue::Number(number) => parameters::integer(number, dialect),
    }
}

/// Returns a value of a marker, which is not null.
fn number(value: Option<&Option<String>>) -> Result<i64, OdbcError> {
    let number = value
        .and_then(Option::as_ref)
        .and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| OdbcError::new("the marker has no number where one is expected"))
}

fn text(row: &mut [Option<String>], column: usize) -> String {
    row.get_mut(column).and_then(Option::take).unwrap_or_default()
}

impl SqlDestination for OdbcDestination {
    type Transaction = OdbcConnection;

    fn markers(&mut self) -> &mut Markers {
        &mut self.markers
    }

    fn name(&self) -> String {
        self.string.to_string()
    }

    fn connect(&mut self) -> Result<(), ConnectError> {
        let opened = OdbcConnection::open(&self.string).map_err(|error| ConnectError {
            is_temporary: error.is_of_connection(),
            error: error.into(),
        })?;
        self.markers = Markers::new(opened.dialect().markers, self.table.clone());
        self.connection = Some(opened);
        Ok(())
    }

    fn disconnect(&mut self) {
        self.connection = None;
    }

    fn connection(&mut self) -> Option<&mut OdbcConnection> {
        self.connection.as_mut()
    }

    fn is_alive(&mut self) -> bool {
        let Ok(connection) = self.connected() else {
            return false;
        };
        // PostgreSQL executes no other statement after an error in a transaction. SQLite has none to roll back then.
        let _ = match self.begins_by_sql() {
            true => connection.run("ROLLBACK").map(drop),
            false => connection.odbc().rollback().map_err(OdbcError::from),
        };
        // Only a statement shows a loss to each driver.
        connection.select(connection.dialect().probe, &[]).is_ok()
    }

    fn begin(&mut self, statements: &str) -> Result<(), BatchError> {
        if !self.begins_by_sql() {
            self.connected()?
                .odbc()
                .set_autocommit(false)
                .map_err(OdbcError::from)?;
        }
        self.run(statements)
    }

    fn end(&mut self, end: TransactionEnd) -> Result<(), BatchError> {
        let connection = self.connected()?;
        match (self.begins_by_sql(), end) {
            (true, TransactionEnd::Commit) => {
                connection.run("COMMIT")?;
            }
            (true, TransactionEnd::RollBack) => {
                connection.run("ROLLBACK")?;
            }
            (false, TransactionEnd::Commit) => connection.odbc().commit().map_err(OdbcError::from)?,
            (false, TransactionEnd::RollBack) => connection.odbc().rollback().map_err(OdbcError::from)?,
        }
        if !self.begins_by_sql() {
            connection.odbc().set_autocommit(true).map_err(OdbcError::from)?;
        }
        // The driver of PostgreSQL reports a commit without a server as done.
        match connection.odbc().is_dead() {
            Ok(true) => Err(OdbcError::new("the connection is lost").into()),
            _ => Ok(()),
        }
    }

    fn run(&mut self, statements: &str) -> Result<(), BatchError> {
        let connection = self.connected()?;
        for statement in statements.split("; ").filter(|statement| !statement.is_empty()) {
            connection.run(statement)?;
        }
        Ok(())
    }

    fn execute(&mut self, statement: &str, values: &[SqlValue<'_>]) -> Result<u64, BatchError> {
        let connection = self.connected()?;
        let dialect = connection.dialect();
        let values: Vec<_> = values.iter().map(|value| parameter(*value, dialect)).collect();
        Ok(connection.execute(statement, &values)? as u64)
    }

    fn select_marker(&mut self, select: &str, key: &str) -> Result<Option<MarkerRow>, BatchError> {
        let connection = self.connected()?;
        let key = parameters::text(key, None, connection.dialect());
        let mut rows = connection.select(select, &[key])?;
        let Some(row) = rows.first_mut() else {
            return Ok(None);
        };
        Ok(Some(MarkerRow {
            marker: Marker {
                fence: number(row.first())?,
                interval: number(row.get(1))?,
                state: text(row, 2),
            },
            session: text(row, 3),
        }))
    }

    fn select_sessions(&mut self, find: &str, name: &str) -> Result<Vec<i64>, BatchError> {
        let connection = self.connected()?;
        let name = parameters::text(name, None, connection.dialect());
        let rows = connection.select(find, &[name])?;
        let ids = rows
            .iter()
            .filter_map(|row| row.first()?.as_ref()?.trim().parse().ok());
        Ok(ids.collect())
    }
}

batch_runtime::destination_client!(|database, instance| {
    forget_markers(&mut OdbcDestination::new(database.clone()), instance)
});
