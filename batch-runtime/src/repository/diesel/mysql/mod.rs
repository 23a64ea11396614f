//! MySQL and MariaDB: as PostgreSQL, but that changing tables is no transaction, and keys come from tables of one row.

mod schema;

#[path = "../common/archive.rs"]
mod archive;
#[path = "../common/checkpoint.rs"]
mod checkpoint;
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

use diesel::connection::{Connection as _, SimpleConnection};
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::mysql::Mysql as Backend;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
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

// What the files in `common/` take for the database, beside what is imported.
pub(super) use server::{missing_migrations, open};

type Connection = Session<MysqlConnection>;
type Database = MysqlDatabase;
type Repository = DieselRepository<MysqlDatabase>;

const MIGRATIONS: Migrations = Migrations {
    current: scripts!("mysql": "0000000000430_spring_batch_4_3", "0000000000431_job_instance_lease"),
    upgrades: scripts!(
        "upgrade/mysql":
        "0000000000220_parameters_of_executions",
        "0000000000300_configuration_location",
        "0000000000410_unique_sequences",
        "0000000000420_fractions_of_seconds",
    ),
};

/// How long one waits for another that brings the tables up to date, in seconds.
const MIGRATION_WAIT: u32 = 600;

/// Where the database is: `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, with diesel's options after a `?`.
pub(super) struct MysqlDatabase {
    url: String,
}

/// Two processes that open a new database at once: the second finds the migrations applied when it gets the lock. Each
/// `CREATE` commits by itself; a migration that was cut off is run again as a whole, and passes over what is there.
fn migrate(connection: &mut Connection) -> Result<(), MigrationFailed> {
    // The lock's name is the server's, not the database's; it may have 64 characters.
    let lock = "md5(concat('batch-runtime ', database()))";
    let take = sql::<diesel::sql_types::Nullable<BigInt>>(&format!("GET_LOCK({lock}, {MIGRATION_WAIT})"));
    let taken: Option<i64> = diesel::select(take).get_result(connection)?;
    if taken != Some(1) {
        let waited = "another process has been changing the tables for ten minutes";
        return Err(MigrationFailed(waited.into()));
    }
    let layout = layout(connection)?;
    let done = MIGRATIONS.run(connection, &layout);
    diesel::sql_query(format!("DO RELEASE_LOCK({lock})")).execute(connection)?;
    Ok(done?)
}

fn layout(connection: &mut Connection) -> QueryResult<Layout> {
    // Where the server tells upper from lower case, tables with another one are others.
    let columns = "SELECT CONCAT(UPPER(TABLE_NAME), '.', UPPER(COLUMN_NAME)) AS name
        FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
        AND (@@lower_case_table_names <> 0 OR BINARY LEFT(TABLE_NAME, CHAR_LENGTH('BATCH_')) = BINARY 'BATCH_'
            OR TABLE_NAME LIKE '\\_\\_diesel%')";
    let columns: Vec<Name> = diesel::sql_query(columns).load(connection)?;
    let layout = Layout::new(columns, connection.prefix());
    Ok(match layout.query_for_listed() {
        Some(listed) => layout.with_listed(diesel::sql_query(listed).load(connection)?),
        None => layout,
    })
}

impl MysqlDatabase {
    fn from_url(url: &str) -> Self {
        // diesel knows one name for both.
        let url = match url.strip_prefix("mariadb:") {
            Some(rest) => format!("mysql:{rest}"),
            None => url.to_owned(),
        };
        Self { url }
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
    /// The next number of a sequence table, as Spring Batch draws it: on a connection of its own, so that nobody waits for
    /// the end of this transaction to get a number. Spec: REPO-20 to REPO-22
    fn next_id(&self, _connection: &mut Connection, sequence: Sequence) -> QueryResult<i64> {
        let table = match sequence {
            Sequence::Instance => "BATCH_JOB_SEQ",
            Sequence::Execution => "BATCH_JOB_EXECUTION_SEQ",
            Sequence::Step => "BATCH_STEP_EXECUTION_SEQ",
        };
        let draw = format!("UPDATE {table} SET ID = LAST_INSERT_ID(ID + 1) LIMIT 1");
        let drawn: Result<i64, RepositoryError> = self.pool.write_surely("draw a key", |connection, _| {
            diesel::sql_query(&draw).execute(connection)?;
            let drawn = sql::<BigInt>("CAST(LAST_INSERT_ID() AS SIGNED)");
            Ok(diesel::select(drawn).get_result(connection)?)
        });
        drawn.map_err(|error| DieselError::QueryBuilderError(Box::new(error)))
    }
}

/// The database's clock, in milliseconds since 1970: several hosts share it.
fn database_now() -> SqlLiteral<BigInt> {
    sql::<BigInt>("CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED)")
}

/// Keeps others from closing an execution while its runner begins something; several threads of it may do so at once.
/// MariaDB does not know diesel's `FOR SHARE`.
fn hold_execution(connection: &mut Connection, execution: i64) -> QueryResult<()> {
    let row =
        "SELECT JOB_EXECUTION_ID FROM BATCH_JOB_EXECUTION WHERE JOB_EXECUTION_ID = ? LOCK IN SHARE MODE";
    let row = diesel::sql_query(row).bind::<BigInt, _>(execution);
    row.execute(connection).map(drop)
}

impl database::Database for MysqlDatabase {
    type Connection = MysqlConnection;
    type Turn = ();

    const BEGIN_WRITE: &'static str = "START TRANSACTION";
    const BEGIN_READ: &'static str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
        START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
    const IS_REMOTE: bool = true;
    const BEGIN_CHUNK: &'static str = "START TRANSACTION; SAVEPOINT batch_chunk";

    /// The server may die while this process lives: what it has begun must not be forgotten.
    fn begin_ahead(&self) -> (&'static str, Option<&'static str>) {
        (Self::BEGIN_WRITE, None)
    }

    fn connect(&self) -> Result<MysqlConnection, RepositoryError> {
        let connection = MysqlConnection::establish(&self.url);
        let mut connection = connection.map_err(|error| self.unusable(error))?;
        // Every statement sees what has been committed before it. A text that does not fit is refused, not cut. One waits for
        // a locked row longer than a lease lasts: whoever has waited in vain for so long has lost its lease anyway.
        let settings = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
            SET SESSION innodb_lock_wait_timeout = 60;
            SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')";
        let set = connection.batch_execute(settings);
        set.map_err(|error| self.unusable(error))?;
        Ok(connection)
    }

    fn turn(&self, _hurried: bool) -> QueryResult<()> {
        Ok(())
    }
}
