//! PostgreSQL: several writers at a time; row locks order those that conflict.

mod chunk_rows;
mod listener;
mod partition_rows;
mod schema;
mod sessions;

#[path = "../per_backend/mod.rs"]
mod per_backend;
#[path = "../per_server/mod.rs"]
mod per_server;

#[cfg(test)]
mod fixture;

use diesel::connection::{AnsiTransactionManager, Connection as _, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::Error as DieselError;

use super::backend::{
    Backend, ChunkRows, EndAndBegin, NewStep, Sequence, TicketRow, UpdatedRows, WantedTickets,
};
use super::fixed_sql::{FixedText, fixed_queries, fixed_query};
use super::migrations::{Failure, MigrationFailed, Migrations};
use super::pool::Pool;
use super::sequences::Sequences;
use super::session::{RunQueryDsl, Session};
use super::table_prefix::TablePrefix;
use crate::repository::owner::nonce_of;
use crate::repository::{Channel, Listener, RepositoryLayout, Result};
use per_backend::catalog;
use per_server::{new_rows, row_locks, session_name, unusable};
use schema::job_execution;

pub(super) use per_server::open;
pub(super) use per_server::{connect_to, convert, missing_migrations};

/// The backend of `per_backend` and `per_server`.
type Db = PostgresDatabase;
type Connection = Session<PgConnection>;

/// The place of the database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with libpq's options after a `?`.
pub(super) struct PostgresDatabase {
    url: String,
    /// The name of the sessions.
    name: String,
}

impl PostgresDatabase {
    fn new(url: &str, nonce: &str) -> Self {
        Self {
            url: url.to_owned(),
            name: session_name(nonce),
        }
    }
}

pub(super) struct DatabaseClock;

impl FixedText for DatabaseClock {
    const TEXT: &'static str = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
}

fixed_queries! {
    NextInstances: "SELECT nextval('batch_job_seq') FROM generate_series(1, ", ")";
    NextInstances6: "SELECT nextval('batch_job_instance_seq') FROM generate_series(1, ", ")";
    NextExecutions: "SELECT nextval('batch_job_execution_seq') FROM generate_series(1, ", ")";
    NextSteps: "SELECT nextval('batch_step_execution_seq') FROM generate_series(1, ", ")";
}

impl Backend for PostgresDatabase {
    type Connection = PgConnection;
    type WriteLock = ();
    type Clock = DatabaseClock;

    const BEGIN_WRITE: &'static str = "BEGIN ISOLATION LEVEL READ COMMITTED";
    const BEGIN_READ: &'static str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    const IS_REMOTE: bool = true;
    /// The end of the transaction ends the setting. It saves the round trip that would release a savepoint.
    const BEGIN_CHUNK: &'static str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL batch.chunk = 'open'";
    const CLOSE_GUARD: Option<&'static str> = None;
    const END_AND_BEGIN: Option<EndAndBegin<PgConnection>> = Some(partition_rows::write);

    const MIGRATIONS: Migrations = Migrations(batch_migrations::POSTGRESQL);
    const REPLACED_TABLES: &'static [&'static str] = &["BATCH_JOB_EXECUTION_PARAMS"];
    // The table stays, with its privileges; columns of it are dropped.
    const ADDITIONS: &'static str =
        "WITH dropped AS (SELECT attrelid, attnum, attname, attacl FROM pg_catalog.pg_attribute
            WHERE attrelid = 'BATCH_JOB_EXECUTION_PARAMS'::regclass AND attnum > 0 AND NOT attisdropped
            AND attname NOT IN ('job_execution_id', 'identifying'))
        SELECT DISTINCT pg_catalog.pg_describe_object(d.classid, d.objid, 0) AS name
            FROM dropped c JOIN pg_catalog.pg_depend d ON d.refobjid = c.attrelid AND d.refobjsubid = c.attnum
            WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'n')
        UNION ALL SELECT 'privileges on column ' || attname FROM dropped WHERE attacl IS NOT NULL
        UNION ALL SELECT 'trigger ' || tgname FROM pg_catalog.pg_trigger
            WHERE tgrelid = 'BATCH_JOB_EXECUTION_PARAMS'::regclass AND NOT tgisinternal
        ORDER BY name";
    const KEEPS_SIGN_OF_ZERO: bool = true;
    const HAS_LOWER_CASE_NAMES: bool = true;

    fn url(&self) -> &str {
        &self.url
    }

    /// Without a schema, lists what an unqualified name finds, in whichever schema.
    fn columns(prefix: &TablePrefix) -> String {
        const IS_FOUND: &str = "pg_catalog.pg_table_is_visible(c.oid)";
        let is_ours = match prefix.schema() {
            Some(schema) => &format!("c.relnamespace = '{schema}'::regnamespace"),
            None => IS_FOUND,
        };
        let start = prefix.without_schema().to_ascii_lowercase();
        format!(
            "SELECT upper(c.relname || '.' || a.attname) AS name
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
            WHERE c.relkind IN ('r', 'p', 'S') AND a.attnum > 0 AND NOT a.attisdropped
            AND (starts_with(c.relname, '{start}') AND {is_ours} OR starts_with(c.relname, '__diesel') AND {IS_FOUND})"
        )
    }

    fn connect(&self) -> Result<PgConnection> {
        let connection = PgConnection::establish(&sessions::with_timeouts(&self.url));
        let mut connection = connection.map_err(|error| unusable(&self.url, error))?;
        let set = connection.batch_execute(&sessions::settings(&self.name));
        set.map_err(|error| unusable(&self.url, error))?;
        Ok(connection)
    }

    fn write_lock(&self, _priority: bool) -> QueryResult<()> {
        Ok(())
    }

    /// Of two processes that open a new database, the second one finds the migrations applied when it gets the lock.
    fn migrate(connection: &mut Connection) -> Result<(), MigrationFailed> {
        type Transaction = AnsiTransactionManager;
        // After an error the connection is closed, which rolls back.
        Transaction::begin_transaction_sql(&mut **connection, Self::BEGIN_WRITE)?;
        // An arbitrary number that no other program is likely to use.
        diesel::sql_query("SELECT pg_advisory_xact_lock(4203520430)").execute(connection)?;
        let found = catalog(connection)?;
        Self::MIGRATIONS.run(connection, &found)?;
        Ok(Transaction::commit_transaction(&mut **connection)?)
    }

    fn convert<T>(
        connection: &mut Connection,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // Waits for transactions that use the tables, and lets no other one begin.
        let tables = [
            "JOB_INSTANCE",
            "JOB_EXECUTION",
            "JOB_EXECUTION_PARAMS",
            "STEP_EXECUTION",
        ];
        let names = tables.map(|table| format!("{}{table}", connection.settings().prefix));
        let lock = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", names.join(", "));
        type Transaction = AnsiTransactionManager;
        Transaction::begin_transaction_sql(&mut **connection, Self::BEGIN_WRITE)?;
        connection.batch_execute(&lock)?;
        // After an error the connection is closed, which rolls back.
        let done = work(connection)?;
        Transaction::commit_transaction(&mut **connection)?;
        Ok(done)
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

    fn share_execution(connection: &mut Connection, execution: i64) -> QueryResult<()> {
        let _: Option<i64> = job_execution::table
            .find(execution)
            .select(job_execution::job_execution_id)
            .for_share()
            .first(connection)
            .optional()?;
        Ok(())
    }

    fn notify(connection: &mut Connection, channel: Channel, about: &str) -> QueryResult<()> {
        listener::notify(connection, channel, about)
    }

    fn listen(&self, channel: Channel, about: &str) -> Result<Option<Box<dyn Listener>>> {
        listener::listen(self.connect()?, channel, about).map(Some)
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

impl Sequences for PostgresDatabase {
    fn next_ids(
        _pool: &Pool<Self>,
        connection: &mut Connection,
        sequence: Sequence,
        count: usize,
    ) -> QueryResult<Vec<i64>> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let mut ids: Vec<i64> = match sequence {
            Sequence::Instance if connection.layout() == RepositoryLayout::V6 => {
                fixed_query::<NextInstances6>(count).load(connection)?
            }
            Sequence::Instance => fixed_query::<NextInstances>(count).load(connection)?,
            Sequence::Execution => fixed_query::<NextExecutions>(count).load(connection)?,
            Sequence::Step => fixed_query::<NextSteps>(count).load(connection)?,
        };
        ids.sort_unstable();
        Ok(ids)
    }
}
