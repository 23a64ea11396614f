//! A database beside the repository, as a destination.
// Spec: MARK-02, MARK-03, MARK-11

use diesel::backend::Backend;
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, HasSqlType, Nullable, Text, Untyped};

use super::connection::{DatabaseConnection, RepositoryConnection};
use crate::error::BatchError;
use crate::marker::{
    ConnectError, Marker, MarkerRow, Markers, SqlDestination, SqlDialect, SqlValue, TransactionEnd,
    create_table,
};
use crate::repository::{DatabaseKind, ErrorClass, RepositoryError, RepositoryUrl};

/// A database beside the repository that a writer writes to exactly once by diesel.
///
/// The writer returns it from its `#[destination]` method, and takes its connection, inside the transaction. The table `BATCH_MARKER`
/// is created there when a step first needs it. [`Destination`](crate::destination::Destination) says what a crash does at each moment.
///
/// ```
/// use batch_runtime::destination::{DatabaseDestination, DatabaseName};
/// use batch_runtime::prelude::*;
/// use diesel::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Postings {
///     #[batch_property]
///     ledger: DatabaseName,
///     #[batch_context]
///     job: JobContext,
/// }
///
/// #[item_writer("Postings")]
/// impl Postings {
///     #[destination]
///     fn ledger(&self) -> Result<DatabaseDestination, BatchError> {
///         DatabaseDestination::at(self.job.database(&self.ledger)?)
///     }
///
///     #[write_items]
///     fn post(&mut self, cents: &[i64], tx: &mut RepositoryConnection) -> Result<(), BatchError> {
///         for cents in cents {
///             let insert = diesel::sql_query("INSERT INTO posting VALUES (?)");
///             insert.bind::<diesel::sql_types::BigInt, _>(*cents).execute(tx.sqlite()?)?;
///         }
///         Ok(())
///     }
/// }
/// ```
pub struct DatabaseDestination {
    url: RepositoryUrl,
    markers: Markers,
    /// `None` before the first use, and after a loss.
    connection: Option<RepositoryConnection>,
}

/// Calls a function of diesel with the connection of the current database, or fails without one.
macro_rules! on {
    ($destination:expr, $diesel:ident => $what:expr) => {
        match $destination.connection.as_mut().map(RepositoryConnection::any) {
            #[cfg(feature = "sqlite")]
            Some(DatabaseConnection::Sqlite($diesel)) => $what,
            #[cfg(feature = "postgres")]
            Some(DatabaseConnection::Postgres($diesel)) => $what,
            #[cfg(feature = "mysql")]
            Some(DatabaseConnection::Mysql($diesel)) => $what,
            None => return Err(RepositoryError::Fault.into()),
        }
    };
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    fence: i64,
    #[diesel(sql_type = BigInt)]
    interval_number: i64,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Text)]
    session_name: String,
}

#[derive(QueryableByName)]
struct SessionRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    id: Option<i64>,
}

/// A statement that diesel prepares once for each connection, unlike `diesel::sql_query`, which is prepared each time.
struct Statement<'a> {
    /// With `?` for each value.
    text: &'a str,
    values: &'a [SqlValue<'a>],
}

impl QueryId for Statement<'_> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Statement<'_> {
    type SqlType = Untyped;
}

impl<C> RunQueryDsl<C> for Statement<'_> {}

impl<DB> QueryFragment<DB> for Statement<'_>
where
    DB: Backend + HasSqlType<Text> + HasSqlType<BigInt>,
    str: ToSql<Text, DB>,
    i64: ToSql<BigInt, DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let mut parts = self.text.split('?');
        pass.push_sql(parts.next().unwrap_or_default());
        for (value, part) in self.values.iter().zip(parts) {
            match value {
                SqlValue::Text(text) => pass.push_bind_param::<Text, str>(text)?,
                SqlValue::Number(number) => pass.push_bind_param::<BigInt, i64>(number)?,
            }
            pass.push_sql(part);
        }
        Ok(())
    }
}

impl DatabaseDestination {
    /// Creates the destination of a URL as the repository takes it, such as `postgres://user@host/database`. Connects later.
    ///
    /// # Errors
    /// When the URL is not valid, or names no database.
    pub fn new(url: &str) -> Result<Self, BatchError> {
        Self::at(url.parse()?)
    }

    /// Creates the destination of a URL that [`JobContext::database`](crate::context::JobContext::database) has returned.
    ///
    /// # Errors
    /// When the URL names no database.
    pub fn at(url: RepositoryUrl) -> Result<Self, BatchError> {
        Self::with_table(url, Markers::TABLE)
    }

    /// Creates the destination with another name of the table of its markers, which may have a schema before it. Repositories
    /// that run jobs of the same name into one database need separate tables.
    ///
    /// # Errors
    /// When the URL names no database.
    pub fn with_table(url: RepositoryUrl, table: &str) -> Result<Self, BatchError> {
        let dialect = match url.database() {
            DatabaseKind::Sqlite => SqlDialect::SQLITE,
            DatabaseKind::Postgresql => SqlDialect {
                // The statement below numbers them.
                numbered_parameters: false,
                ..SqlDialect::POSTGRES
            },
            DatabaseKind::Mysql => SqlDialect::MYSQL,
            DatabaseKind::Memory => {
                return Err(BatchError::msg(
                    "cannot write to `memory:`: expected the URL of a PostgreSQL, MySQL or SQLite database",
                ));
            }
        };
        Ok(Self {
            url,
            markers: Markers::new(dialect, table),
            connection: None,
        })
    }

    /// Creates the table of the markers, if it is not there. A step creates it by itself, if the database lets it.
    ///
    /// # Errors
    /// When the database cannot be reached, or the user may not create tables.
    pub fn create_table(&mut self) -> Result<(), BatchError> {
        create_table(self)
    }
}

impl SqlDestination for DatabaseDestination {
    type Transaction = RepositoryConnection;

    fn markers(&mut self) -> &mut Markers {
        &mut self.markers
    }

    fn name(&self) -> String {
        self.url.to_string()
    }

    fn connect(&mut self) -> Result<(), ConnectError> {
        let connected = self.url.connect().map_err(|error| ConnectError {
            is_temporary: error.class() == ErrorClass::Connection,
            error: error.into(),
        });
        self.connection = Some(connected?);
        Ok(())
    }

    fn disconnect(&mut self) {
        self.connection = None;
    }

    fn connection(&mut self) -> Option<&mut RepositoryConnection> {
        self.connection.as_mut()
    }

    fn is_alive(&mut self) -> bool {
        match (self.url.database(), &mut self.connection) {
            // The file is there as long as the process.
            (DatabaseKind::Sqlite, _) => true,
            // PostgreSQL executes no other statement after an error.
            (_, Some(connection)) => connection.batch_execute("ROLLBACK").is_ok(),
            (_, None) => false,
        }
    }

    fn begin(&mut self, statements: &str) -> Result<(), BatchError> {
        // By the manager of diesel: a transaction of diesel inside this one is a savepoint then.
        let started = on!(self, diesel => AnsiTransactionManager::begin_transaction_sql(diesel, statements));
        Ok(started?)
    }

    fn end(&mut self, end: TransactionEnd) -> Result<(), BatchError> {
        let ended = match end {
            TransactionEnd::Commit => on!(self, diesel => AnsiTransactionManager::commit_transaction(diesel)),
            TransactionEnd::RollBack => {
                on!(self, diesel => AnsiTransactionManager::rollback_transaction(diesel))
            }
        };
        Ok(ended?)
    }

    fn run(&mut self, statements: &str) -> Result<(), BatchError> {
        Ok(on!(self, diesel => diesel.batch_execute(statements))?)
    }

    fn execute(&mut self, statement: &str, values: &[SqlValue<'_>]) -> Result<u64, BatchError> {
        let statement = Statement {
            text: statement,
            values,
        };
        Ok(on!(self, diesel => statement.execute(diesel))? as u64)
    }

    fn select_marker(&mut self, select: &str, key: &str) -> Result<Option<MarkerRow>, BatchError> {
        let select = Statement {
            text: select,
            values: &[SqlValue::Text(key)],
        };
        let found: Option<Row> = on!(self, diesel => select.get_result(diesel).optional())?;
        Ok(found.map(|row| MarkerRow {
            marker: Marker {
                fence: row.fence,
                interval: row.interval_number,
                state: row.state,
            },
            session: row.session_name,
        }))
    }

    fn select_sessions(&mut self, find: &str, name: &str) -> Result<Vec<i64>, BatchError> {
        let find = Statement {
            text: find,
            values: &[SqlValue::Text(name)],
        };
        let found: Vec<SessionRow> = on!(self, diesel => find.load(diesel))?;
        Ok(found.into_iter().filter_map(|row| row.id).collect())
    }
}
