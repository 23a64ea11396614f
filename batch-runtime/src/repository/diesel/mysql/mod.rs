//! MySQL and MariaDB: like PostgreSQL, but schema changes commit by themselves, and ids come from tables with one row.

mod schema;
mod sequences;
mod sessions;

mod chunk_rows;
#[path = "../per_backend/mod.rs"]
mod per_backend;
#[path = "../per_server/mod.rs"]
mod per_server;

#[cfg(test)]
mod fixture;

use diesel::connection::{Connection as _, SimpleConnection};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::{BigInt, Text};

use super::backend::{Backend, ChunkRows, NewStep, Sequence, TicketRow, UpdatedRows, WantedTickets};
use super::fixed_sql::{FixedText, fixed_queries, fixed_query, fixed_sql};
use super::migrations::{Failure, MigrationFailed, Migrations};
use super::pool::{Pool, Tx};
use super::sequences::Sequences;
use super::session::{RunQueryDsl, Session, SessionSettings};
use super::table_prefix::TablePrefix;
use crate::repository::owner::nonce_of;
use crate::repository::{RepositoryLayout, Result};
use per_backend::catalog;
use per_server::{new_rows, row_locks, session_name, unusable};
use sessions::SessionNames;

pub(super) use per_server::open;
pub(super) use per_server::{connect_to, convert, missing_migrations};

/// The backend of `per_backend` and `per_server`.
type Db = MysqlDatabase;
type Connection = Session<MysqlConnection>;

/// How long to wait for another process that migrates the tables, in seconds.
const MIGRATION_WAIT: u32 = 600;

/// The place of the database: `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, with diesel's options after a `?`.
pub(super) struct MysqlDatabase {
    url: String,
    names: SessionNames,
}

impl MysqlDatabase {
    fn new(url: &str, nonce: &str) -> Self {
        // diesel has one scheme for both.
        let url = match url.strip_prefix("mariadb:") {
            Some(rest) => format!("mysql:{rest}"),
            None => url.to_owned(),
        };
        let names = SessionNames::new(&session_name(nonce));
        Self { url, names }
    }
}

pub(super) struct DatabaseClock;

impl FixedText for DatabaseClock {
    const TEXT: &'static str = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED)";
}

struct LastId;

impl FixedText for LastId {
    const TEXT: &'static str = "CAST(LAST_INSERT_ID() AS SIGNED)";
}

fixed_queries! {
    NextInstances: "UPDATE BATCH_JOB_SEQ SET ID = LAST_INSERT_ID(ID + ", ") LIMIT 1";
    NextInstances6: "UPDATE BATCH_JOB_INSTANCE_SEQ SET ID = LAST_INSERT_ID(ID + ", ") LIMIT 1";
    NextExecutions: "UPDATE BATCH_JOB_EXECUTION_SEQ SET ID = LAST_INSERT_ID(ID + ", ") LIMIT 1";
    NextSteps: "UPDATE BATCH_STEP_EXECUTION_SEQ SET ID = LAST_INSERT_ID(ID + ", ") LIMIT 1";
    SharedExecution: "SELECT JOB_EXECUTION_ID FROM BATCH_JOB_EXECUTION WHERE JOB_EXECUTION_ID = ", " LOCK IN SHARE MODE";
}

/// Runs `work` while no other process of this runtime changes the tables.
fn with_migration_lock<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // The lock's name is the server's, not the database's; it may have 64 characters. `rename` replaces DATABASE() by the schema of the
    // prefix, so that programs with different URLs share the lock of its tables.
    let lock = "md5(concat('batch-runtime ', database()))";
    let take = sql::<diesel::sql_types::Nullable<BigInt>>(&format!("GET_LOCK({lock}, {MIGRATION_WAIT})"));
    let taken: Option<i64> = diesel::select(take).get_result(connection)?;
    if taken != Some(1) {
        return Err("another process has been changing the tables for ten minutes".into());
    }
    let done = work(connection);
    diesel::sql_query(format!("DO RELEASE_LOCK({lock})")).execute(connection)?;
    done
}

impl Backend for MysqlDatabase {
    type Connection = MysqlConnection;
    type WriteLock = ();
    type Clock = DatabaseClock;

    const BEGIN_WRITE: &'static str = "START TRANSACTION";
    const BEGIN_READ: &'static str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
        START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
    const IS_REMOTE: bool = true;
    const BEGIN_CHUNK: &'static str = "START TRANSACTION; SAVEPOINT batch_chunk";

    const MIGRATIONS: Migrations = Migrations(batch_migrations::MYSQL);
    const REPLACED_TABLES: &'static [&'static str] = &["BATCH_JOB_EXECUTION_PARAMS"];
    // The primary key on MY_ROW_ID is one that MySQL generates, also for the new table.
    const ADDITIONS: &'static str = "SELECT CONCAT('index ', INDEX_NAME) AS name FROM information_schema.STATISTICS
            WHERE TABLE_SCHEMA = DATABASE() AND (BINARY TABLE_NAME = BINARY 'BATCH_JOB_EXECUTION_PARAMS'
                OR @@lower_case_table_names <> 0 AND UPPER(TABLE_NAME) = UPPER('BATCH_JOB_EXECUTION_PARAMS'))
            GROUP BY INDEX_NAME
            HAVING UPPER(GROUP_CONCAT(COALESCE(COLUMN_NAME, '') ORDER BY SEQ_IN_INDEX)) NOT IN ('JOB_EXECUTION_ID', 'MY_ROW_ID')
        UNION ALL SELECT CONCAT('trigger ', TRIGGER_NAME) FROM information_schema.TRIGGERS
            WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND (BINARY EVENT_OBJECT_TABLE = BINARY 'BATCH_JOB_EXECUTION_PARAMS'
                OR @@lower_case_table_names <> 0 AND UPPER(EVENT_OBJECT_TABLE) = UPPER('BATCH_JOB_EXECUTION_PARAMS'))
        ORDER BY name";
    const COMMITS_SCHEMA_CHANGES: bool = true;

    fn url(&self) -> &str {
        &self.url
    }

    /// On a server with case-sensitive names, tables in another case are different tables.
    fn columns(prefix: &TablePrefix) -> String {
        let schema = prefix.schema().map(|schema| format!("'{schema}'"));
        let schema = schema.as_deref().unwrap_or("DATABASE()");
        let start = prefix.without_schema();
        format!(
            "SELECT CONCAT(UPPER(TABLE_NAME), '.', UPPER(COLUMN_NAME)) AS name FROM information_schema.COLUMNS
            WHERE TABLE_SCHEMA = {schema}
                AND (@@lower_case_table_names <> 0 OR BINARY LEFT(TABLE_NAME, CHAR_LENGTH('{start}')) = BINARY '{start}')
            OR TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE '\\_\\_diesel%'"
        )
    }

    fn connect(&self) -> Result<MysqlConnection> {
        let connection = MysqlConnection::establish(&self.url);
        let mut connection = connection.map_err(|error| unusable(&self.url, error))?;
        let set = connection.batch_execute(sessions::SETTINGS);
        let named = set.and_then(|()| self.names.give(&mut connection));
        named.map_err(|error| unusable(&self.url, error))?;
        Ok(connection)
    }

    fn write_lock(&self, _priority: bool) -> QueryResult<()> {
        Ok(())
    }

    /// Of two processes that open a new database, the second one finds the migrations applied when it gets the lock. Each
    /// `CREATE` commits by itself; an interrupted migration is run again as a whole and skips what exists.
    fn migrate(connection: &mut Connection) -> Result<(), MigrationFailed> {
        let done = with_migration_lock(connection, |connection| {
            let found = catalog(connection)?;
            Self::MIGRATIONS.run(connection, &found)
        });
        done.map_err(MigrationFailed)
    }

    fn convert<T>(
        connection: &mut Connection,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        with_migration_lock(connection, work)
    }

    /// Changes of tables wait for each other, so the lock is on a table that launches write and a conversion does not: on MySQL the table
    /// of the ids. MariaDB replaces it by a sequence; but there another table may refer to a locked one.
    fn lock_out_launches(&self, settings: &SessionSettings) -> Result<Option<Connection>, Failure> {
        let mut connection = Session::new(self.connect()?, settings.clone());
        let version: String = diesel::select(sql::<Text>("VERSION()")).get_result(&mut connection)?;
        let table = match version.contains("MariaDB") {
            true => "JOB_EXECUTION",
            false => "JOB_EXECUTION_SEQ",
        };
        let lock = format!(
            "SET SESSION lock_wait_timeout = 60; LOCK TABLES {}{table} READ",
            settings.prefix
        );
        connection.batch_execute(&lock).map_err(|error| {
            format!("cannot lock the executions ({error}): stop all programs that use the repository; the user needs the privilege LOCK TABLES")
        })?;
        Ok(Some(connection))
    }

    fn convert_sequences(connection: &mut Connection, to: RepositoryLayout) -> QueryResult<()> {
        sequences::convert(connection, to)
    }

    fn insert_steps(connection: &mut Connection, steps: &[NewStep<'_>]) -> QueryResult<()> {
        new_rows::insert_steps(connection, steps)
    }

    fn lock_instance(connection: &mut Connection, instance: i64) -> QueryResult<bool> {
        row_locks::lock_instance(connection, instance)
    }

    fn lock_executions(connection: &mut Connection, instance: i64) -> QueryResult<()> {
        row_locks::lock_executions(connection, instance)
    }

    fn lock_step(connection: &mut Connection, step: i64) -> QueryResult<()> {
        row_locks::lock_step(connection, step)
    }

    fn lock_tickets(
        connection: &mut Session<Self::Connection>,
        wanted: &WantedTickets<'_>,
    ) -> QueryResult<Vec<TicketRow>> {
        row_locks::lock_tickets(connection, wanted)
    }

    /// MariaDB does not support the `FOR SHARE` of diesel.
    fn share_execution(connection: &mut Connection, execution: i64) -> QueryResult<()> {
        let _: Vec<i64> = fixed_query::<SharedExecution>(execution).load(connection)?;
        Ok(())
    }

    fn end_sessions(connection: &mut Connection, owner: &str) -> QueryResult<()> {
        nonce_of(owner).map_or(Ok(()), |nonce| sessions::end(connection, &session_name(nonce)))
    }

    fn lock_hint(connection: &mut Connection, error: &DieselError) -> Option<String> {
        sessions::lock_hint(connection, error)
    }

    fn update_chunk_rows(connection: &mut Connection, rows: &ChunkRows<'_>) -> QueryResult<UpdatedRows> {
        chunk_rows::write(connection, rows)
    }
}

impl Sequences for MysqlDatabase {
    /// On a separate connection, so that no other transaction waits for the end of this one.
    // Spec: REPO-20 to REPO-22
    fn next_ids(
        pool: &Pool<Self>,
        connection: &mut Connection,
        sequence: Sequence,
        count: usize,
    ) -> QueryResult<Vec<i64>> {
        let count = i64::try_from(count).unwrap_or(0);
        if connection.settings().has_sequences {
            return sequences::next_ids(connection, sequence, count);
        }
        let last: Result<i64> = pool.run(Tx::write("allocate an id"), |connection, _| {
            match sequence {
                Sequence::Instance if connection.layout() == RepositoryLayout::V6 => {
                    fixed_query::<NextInstances6>(count).execute(connection)?
                }
                Sequence::Instance => fixed_query::<NextInstances>(count).execute(connection)?,
                Sequence::Execution => fixed_query::<NextExecutions>(count).execute(connection)?,
                Sequence::Step => fixed_query::<NextSteps>(count).execute(connection)?,
            };
            Ok(diesel::select(fixed_sql::<LastId>()).get_result(connection)?)
        });
        let last = last.map_err(|error| DieselError::QueryBuilderError(Box::new(error)))?;
        Ok((last - count + 1..=last).collect())
    }
}
