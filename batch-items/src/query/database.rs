//! The connection of a reader, and the differences between databases.

use batch_runtime::prelude::JobContext;
use batch_runtime::repository::{DatabaseConnection, DatabaseKind, RepositoryConnection, RepositoryUrl};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error as DieselError;

use super::page::{KeySyntax, Statement};
use super::row::FromRow;
use crate::sql::{self, Syntax};

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Opens a connection: to the database of the job repository, or to another one.
pub(super) fn connect(job: &JobContext, url: &str) -> Result<RepositoryConnection, Cause> {
    if url.is_empty() {
        return Ok(job.connect()?);
    }
    let url = job.database(url)?;
    let connection = match url.database() {
        #[cfg(feature = "sqlite")]
        DatabaseKind::Sqlite => {
            let path = url.as_str().trim_start_matches("sqlite://");
            let path = path.split('?').next().unwrap_or_default();
            if !std::path::Path::new(path).exists() {
                return Err(format!("the database `{url}` does not exist").into());
            }
            let mut connection =
                SqliteConnection::establish(path).map_err(|error| unreachable(&url, &error))?;
            diesel::sql_query("PRAGMA busy_timeout = 60000").execute(&mut connection)?;
            connection.into()
        }
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgresql => PgConnection::establish(url.as_str())
            .map_err(|error| unreachable(&url, &error))?
            .into(),
        #[cfg(feature = "mysql")]
        DatabaseKind::Mysql => MysqlConnection::establish(url.as_str())
            .map_err(|error| unreachable(&url, &error))?
            .into(),
        #[allow(unreachable_patterns, reason = "depends on the features")]
        _ => return Err(unsupported().into()),
    };
    Ok(connection)
}

/// The message of a client library may contain the password.
fn unreachable(url: &RepositoryUrl, error: &ConnectionError) -> Cause {
    let message = error.to_string().replace(url.as_str(), &url.to_string());
    format!("cannot connect to `{url}`: {message}").into()
}

fn unsupported() -> DieselError {
    DieselError::QueryBuilderError(
        "batch-items is compiled without this database; enable its feature `postgres` or `mysql`".into(),
    )
}

/// Runs a query with the connection of any database.
macro_rules! on_any {
    ($connection:expr, $diesel:ident => $what:expr) => {
        match $connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite($diesel) => $what,
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres($diesel) => $what,
            #[cfg(feature = "mysql")]
            DatabaseConnection::Mysql($diesel) => $what,
            #[allow(
                unreachable_patterns,
                reason = "batch-runtime may have more databases than this crate"
            )]
            _ => Err(unsupported()),
        }
    };
}

#[cfg(feature = "sqlite")]
impl diesel::RunQueryDsl<SqliteConnection> for Statement {}
#[cfg(feature = "postgres")]
impl diesel::RunQueryDsl<PgConnection> for Statement {}
#[cfg(feature = "mysql")]
impl diesel::RunQueryDsl<MysqlConnection> for Statement {}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    count: i64,
}

/// Returns the number that a statement selects as `count`.
pub(super) fn count(connection: &mut RepositoryConnection, statement: &Statement) -> QueryResult<i64> {
    on_any!(connection, diesel => statement.clone().get_result::<Count>(diesel)).map(|count| count.count)
}

#[cfg(feature = "sqlite")]
#[derive(QueryableByName)]
struct JournalMode {
    #[diesel(sql_type = diesel::sql_types::Text)]
    journal_mode: String,
}

#[cfg(feature = "sqlite")]
fn journal_mode(diesel: &mut SqliteConnection) -> QueryResult<String> {
    let mode = diesel::sql_query("PRAGMA journal_mode").get_result::<JournalMode>(diesel)?;
    Ok(mode.journal_mode)
}

/// Returns whether a commit waits for the end of a query: in a database in memory, which has no log.
pub(super) fn blocks_commits(connection: &mut RepositoryConnection) -> QueryResult<bool> {
    match connection.any() {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(diesel) => Ok(journal_mode(diesel)? == "memory"),
        _ => Ok(false),
    }
}

/// Begins a transaction whose queries all see one state of the database. It ends with the connection.
pub(super) fn begin_snapshot(connection: &mut RepositoryConnection) -> Result<(), Cause> {
    match connection.any() {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(diesel) => match journal_mode(diesel)?.as_str() {
            "wal" => Ok(diesel.batch_execute("BEGIN")?),
            "memory" => Err("`snapshot` is not possible for a database in memory".into()),
            mode => Err(format!(
                "`snapshot` needs the journal mode WAL, and the database has `{mode}`: other programs could not write until the step ends; \
                 execute `PRAGMA journal_mode = WAL` once, or remove `snapshot`"
            )
            .into()),
        },
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(diesel) => {
            Ok(diesel.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?)
        }
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(diesel) => Ok(diesel.batch_execute(
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        )?),
        #[allow(
            unreachable_patterns,
            reason = "batch-runtime may have more databases than this crate"
        )]
        _ => Err(unsupported().into()),
    }
}

/// Returns the rows of a statement.
pub(super) fn load<T: FromRow>(
    connection: &mut RepositoryConnection,
    statement: Statement,
) -> QueryResult<Vec<T>> {
    on_any!(connection, diesel => super::row::load(statement, diesel))
}

/// Calls `each` with the rows of a statement, as they arrive, until it returns `false`.
pub(super) fn stream<T: FromRow>(
    connection: &mut RepositoryConnection,
    statement: Statement,
    each: impl FnMut(QueryResult<T>) -> bool,
) -> QueryResult<()> {
    match connection.any() {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(diesel) => {
            super::row::stream::<_, _, diesel::connection::DefaultLoadingMode>(statement, diesel, each)
        }
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(diesel) => {
            super::row::stream::<_, _, diesel::pg::PgRowByRowLoadingMode>(statement, diesel, each)
        }
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(diesel) => {
            super::row::stream::<_, _, diesel::connection::DefaultLoadingMode>(statement, diesel, each)
        }
        #[allow(
            unreachable_patterns,
            reason = "batch-runtime may have more databases than this crate"
        )]
        _ => Err(unsupported()),
    }
}

/// Returns how the database writes texts and comments; `None` if this crate is compiled without it.
pub(super) fn syntax(connection: &mut RepositoryConnection) -> Option<&'static Syntax> {
    match connection.any() {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(_) => Some(&sql::SQLITE),
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(_) => Some(&sql::POSTGRES),
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(_) => Some(&sql::MYSQL),
        #[allow(
            unreachable_patterns,
            reason = "batch-runtime may have more databases than this crate"
        )]
        _ => None,
    }
}

/// Returns how the database writes the conditions of a key.
pub(super) fn key_syntax(
    connection: &mut RepositoryConnection,
    query: &Statement,
    key: &[String],
) -> QueryResult<KeySyntax> {
    let (quote, casts) = match connection.any() {
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(diesel) => ('"', postgres_casts(diesel, query, key)?),
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(diesel) => {
            // It would order long texts by their beginnings alone, but compares them whole.
            diesel::sql_query("SET SESSION max_sort_length = 8388608").execute(diesel)?;
            ('`', Vec::new())
        }
        _ => ('"', Vec::new()),
    };
    // Only PostgreSQL asks for the types of the key.
    let _ = (query, key);
    Ok(KeySyntax { quote, casts })
}

/// Returns the types of the key's columns that a text has to be cast to.
#[cfg(feature = "postgres")]
fn postgres_casts(
    connection: &mut PgConnection,
    query: &Statement,
    key: &[String],
) -> QueryResult<Vec<Option<String>>> {
    #[derive(QueryableByName)]
    struct TypeName {
        #[diesel(sql_type = diesel::sql_types::Text)]
        name: String,
    }
    /// Values of these types are sent as such.
    const SENT: &[&str] = &[
        "smallint",
        "integer",
        "bigint",
        "double precision",
        "text",
        "character varying",
        "bytea",
    ];
    let casts = super::page::quoted(key, '"').into_iter().map(|column| {
        // With -1 a CHAR is `bpchar`; a cast to `character` would cut it to one character.
        let what = format!("format_type(pg_typeof({column}), -1) AS name");
        let found: Option<TypeName> = query
            .select(&what, " LIMIT 1")
            .get_result(connection)
            .optional()?;
        let name = found.map(|found| found.name);
        Ok(name.filter(|name| !SENT.contains(&name.as_str())))
    });
    casts.collect()
}
