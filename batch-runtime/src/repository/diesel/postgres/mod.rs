//! PostgreSQL: several write at the same time, each on rows of its own; who must not is kept out by row locks.

mod checkpoint;
mod schema;

#[path = "../common/archive.rs"]
mod archive;
#[path = "../common/closing.rs"]
mod closing;
#[path = "../common/launch.rs"]
mod launch;
#[path = "../common/lease.rs"]
mod lease;
#[path = "../common/locks.rs"]
mod locks;
#[path = "../common/queries.rs"]
mod queries;
#[path = "../common/rows.rs"]
mod rows;
#[path = "../common/server.rs"]
mod server;
#[path = "../common/steps.rs"]
mod steps;

#[cfg(test)]
#[path = "../common/tests.rs"]
mod every_database;
#[cfg(test)]
mod fixture;
#[cfg(test)]
#[path = "../common/races.rs"]
mod races;

use diesel::connection::{AnsiTransactionManager, Connection as _, SimpleConnection, TransactionManager};
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::pg::Pg as Backend;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::DieselRepository;
use super::database::{self, TransactionError, overtaken_by_a_change, overtaken_by_a_double};
use super::migrations::{Layout, MigrationFailed, Migrations, Name, scripts};
use super::moment::Moment;
use super::prefix::{RunQueryDsl, Session};
use super::transaction::Chunk;
use super::url::shown;
use crate::repository::RepositoryError;
use locks::{lock_executions, lock_instance, lock_step};
use schema::batch_job_execution;

// What the files in `common/` take for the database, beside what is imported.
pub(super) use server::{missing_migrations, open};

type Connection = Session<PgConnection>;
type Database = PostgresDatabase;
type Repository = DieselRepository<PostgresDatabase>;

const MIGRATIONS: Migrations = Migrations {
    current: scripts!("postgres": "0000000000430_spring_batch_4_3", "0000000000431_job_instance_lease"),
    upgrades: scripts!(
        "upgrade/postgres":
        "0000000000220_parameters_of_executions",
        "0000000000300_configuration_location",
        "0000000000410_character_lengths",
    ),
};

/// How long a statement waits for a row that another transaction has locked. Longer than a lease lasts: whoever has waited
/// in vain for so long has lost its lease anyway.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '60s'";

/// Where the database is: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with libpq's options after a `?`.
pub(super) struct PostgresDatabase {
    url: String,
}

/// Two processes that open a new database at once: the second finds the migrations applied when it gets the lock.
fn migrate(connection: &mut Connection) -> Result<(), MigrationFailed> {
    type Transaction = AnsiTransactionManager;
    // After an error the connection is closed, which rolls back.
    Transaction::begin_transaction_sql(&mut **connection, <Database as database::Database>::BEGIN_WRITE)?;
    // The number is nothing but ours.
    diesel::sql_query("SELECT pg_advisory_xact_lock(4203520430)").execute(connection)?;
    let layout = layout(connection)?;
    MIGRATIONS.run(connection, &layout)?;
    Ok(Transaction::commit_transaction(&mut **connection)?)
}

/// What an unqualified name finds, whichever schema it is in.
fn layout(connection: &mut Connection) -> QueryResult<Layout> {
    let columns = "SELECT upper(c.relname || '.' || a.attname) AS name
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind IN ('r', 'p') AND pg_catalog.pg_table_is_visible(c.oid)
        AND a.attnum > 0 AND NOT a.attisdropped AND (starts_with(c.relname, 'batch_') OR starts_with(c.relname, '__diesel'))";
    let columns: Vec<Name> = diesel::sql_query(columns).load(connection)?;
    let layout = Layout::new(columns, connection.prefix());
    Ok(match layout.query_for_listed() {
        Some(listed) => layout.with_listed(diesel::sql_query(listed).load(connection)?),
        None => layout,
    })
}

impl PostgresDatabase {
    fn from_url(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    fn unusable(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> RepositoryError {
        RepositoryError::Connect {
            url: shown(&self.url),
            source: source.into(),
            hint: "",
        }
    }
}

/// The sequences that keys are drawn from. Spec: REPO-18, REPO-19
#[derive(Clone, Copy)]
enum Sequence {
    Instance,
    Execution,
    Step,
}

impl Repository {
    /// The next number of a sequence. Spec: REPO-22
    fn next_id(&self, connection: &mut Connection, sequence: Sequence) -> QueryResult<i64> {
        let name = match sequence {
            Sequence::Instance => "nextval('batch_job_seq')",
            Sequence::Execution => "nextval('batch_job_execution_seq')",
            Sequence::Step => "nextval('batch_step_execution_seq')",
        };
        diesel::select(sql::<BigInt>(name)).get_result(connection)
    }
}

/// The database's clock, in milliseconds since 1970: several hosts share it.
fn database_now() -> SqlLiteral<BigInt> {
    sql::<BigInt>("CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)")
}

/// Keeps others from closing an execution while its runner begins something; several threads of it may do so at once.
fn hold_execution(connection: &mut Connection, execution: i64) -> QueryResult<()> {
    let _: Option<i64> = batch_job_execution::table
        .find(execution)
        .select(batch_job_execution::job_execution_id)
        .for_share()
        .first(connection)
        .optional()?;
    Ok(())
}

impl database::Database for PostgresDatabase {
    type Connection = PgConnection;
    type Turn = ();

    const BEGIN_WRITE: &'static str = "BEGIN ISOLATION LEVEL READ COMMITTED";
    const BEGIN_READ: &'static str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    const IS_REMOTE: bool = true;
    const BEGIN_CHUNK: &'static str = "BEGIN ISOLATION LEVEL READ COMMITTED; SAVEPOINT batch_chunk";

    /// The server may die while this process lives: what it has begun must not be forgotten.
    fn begin_ahead(&self) -> (&'static str, Option<&'static str>) {
        (Self::BEGIN_WRITE, None)
    }

    fn connect(&self) -> Result<PgConnection, RepositoryError> {
        let connection = PgConnection::establish(&self.url);
        let mut connection = connection.map_err(|error| self.unusable(error))?;
        let set = connection.batch_execute(LOCK_TIMEOUT);
        set.map_err(|error| self.unusable(error))?;
        Ok(connection)
    }

    fn turn(&self, _hurried: bool) -> QueryResult<()> {
        Ok(())
    }
}
