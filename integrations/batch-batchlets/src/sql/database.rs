//! The repository's database, whichever it is.

use batch_runtime::prelude::*;
use diesel::QueryResult;
use diesel::connection::SimpleConnection;

use batch_items::sql::{self, Syntax};

/// A connection for the statements of a script.
pub(super) struct Database<'c> {
    pub(super) connection: &'c mut dyn SimpleConnection,
    pub(super) syntax: &'static Syntax,
    /// Begins a transaction.
    pub(super) begin: &'static str,
    /// A statement for another connection that interrupts the one which runs on this one.
    pub(super) interrupt: Option<String>,
}

impl<'c> Database<'c> {
    /// Returns the database of a connection.
    ///
    /// # Errors
    /// When this crate was compiled without the feature of that database.
    pub(super) fn of(connection: &'c mut RepositoryConnection) -> Result<Self, BatchError> {
        #[cfg(feature = "sqlite")]
        if connection.sqlite().is_ok() {
            return Ok(Self {
                connection: connection.sqlite()?,
                syntax: &sql::SQLITE,
                // At once: a transaction that reads before it writes could fail half-way because another one wrote first.
                begin: "BEGIN IMMEDIATE",
                interrupt: None,
            });
        }
        #[cfg(feature = "postgres")]
        if connection.postgres().is_ok() {
            let connection = connection.postgres()?;
            let id = session_id(connection, "SELECT pg_backend_pid()::bigint AS id")?;
            return Ok(Self {
                connection,
                syntax: &sql::POSTGRES,
                begin: "BEGIN",
                interrupt: Some(format!("SELECT pg_cancel_backend({id})")),
            });
        }
        #[cfg(feature = "mysql")]
        if connection.mysql().is_ok() {
            let connection = connection.mysql()?;
            let id = session_id(connection, "SELECT CAST(CONNECTION_ID() AS SIGNED) AS id")?;
            return Ok(Self {
                connection,
                syntax: &sql::MYSQL,
                // Unlike after START TRANSACTION, statements after an implicit commit are in a transaction too.
                begin: "SET autocommit = 0",
                interrupt: Some(format!("KILL QUERY {id}")),
            });
        }
        let _ = connection;
        Err(BatchError::msg(
            "batch-batchlets was compiled without the feature of the repository's database; add `sqlite`, `postgres` or `mysql` to \
             its features",
        ))
    }

    /// Executes one statement.
    pub(super) fn execute(&mut self, statement: &str) -> QueryResult<()> {
        self.connection.batch_execute(statement)
    }
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
fn session_id<C>(connection: &mut C, query: &str) -> QueryResult<i64>
where
    C: diesel::Connection,
    for<'q> diesel::query_builder::SqlQuery: diesel::query_dsl::LoadQuery<'q, C, SessionId>,
{
    use diesel::RunQueryDsl;

    let session: SessionId = diesel::sql_query(query).get_result(connection)?;
    Ok(session.id)
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
#[derive(diesel::QueryableByName)]
struct SessionId {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    id: i64,
}
