//! The interface of a database. To add one: implement [`Backend`] in a new folder, declare its tables there with
//! `schema::tables!`, include `per_backend/mod.rs` (and on a server `per_server/mod.rs`) as a module, and add its
//! migrations, its scheme in `url.rs` and its variants in `connection.rs` and `chunk_transaction.rs`.

use diesel::connection::{AnsiTransactionManager, Connection};
use diesel::result::{Error as DieselError, QueryResult};

use super::connection::RepositoryConnection;
use super::db_timestamp::DbTimestamp;
use super::fixed_sql::{FixedSql, FixedText, fixed_sql};
use super::migrations::{Failure, MigrationFailed, Migrations};
use super::session::{Session, SessionSettings};
use super::table_prefix::TablePrefix;
use crate::execution::StepCounters;
use crate::ids::StepExecutionId;
use crate::repository::{Channel, Listener, RepositoryLayout, Result, StoredContext};
use crate::status::BatchStatus;

/// The tickets that a worker wants.
pub(in crate::repository::diesel) struct WantedTickets<'a> {
    pub(in crate::repository::diesel) queue: &'a str,
    /// Their most.
    pub(in crate::repository::diesel) count: i64,
    /// The fingerprints that are left to other workers.
    pub(in crate::repository::diesel) except: &'a [String],
}

/// The step execution, the job execution, the attempt and the fingerprint of a ticket.
pub(in crate::repository::diesel) type TicketRow = (i64, i64, i64, String);

/// A database of one kind. Statements name the tables with the prefix `BATCH_`; the session renames them.
pub(super) trait Backend: Send + Sync + Sized + 'static {
    /// The connection of diesel.
    type Connection: Connection<TransactionManager = AnsiTransactionManager>
        + Into<RepositoryConnection>
        + Send;

    /// The right to write, on a database that has one writer at a time.
    type WriteLock: Send;

    /// The text of `now`.
    type Clock: FixedText;

    /// Starts a transaction that writes. Each statement sees what was committed before the statement.
    const BEGIN_WRITE: &'static str;
    /// Starts a transaction that reads one state of the database.
    const BEGIN_READ: &'static str;
    /// Starts a transaction for a writer, with a guard that reveals whether the writer has ended it.
    const BEGIN_CHUNK: &'static str;
    /// Releases the guard, and fails if the transaction has ended; `None` if `update_chunk_rows` checks it.
    const CLOSE_GUARD: Option<&'static str> = Some("RELEASE SAVEPOINT batch_chunk");
    /// Whether a connection can be lost because the database is another process.
    const IS_REMOTE: bool;
    /// The scripts that create and upgrade the tables.
    const MIGRATIONS: Migrations;

    /// The tables that a conversion replaces, or drops columns of.
    const REPLACED_TABLES: &'static [&'static str];

    /// The query for the objects that a program has added to them, and that a conversion would remove or break.
    const ADDITIONS: &'static str;

    /// Whether each change of a table commits by itself.
    const COMMITS_SCHEMA_CHANGES: bool = false;
    /// Whether a column for numbers keeps the sign of zero.
    const KEEPS_SIGN_OF_ZERO: bool = false;
    /// Whether names are stored in lower case.
    const HAS_LOWER_CASE_NAMES: bool = false;

    /// Returns the URL of the database, with its password.
    fn url(&self) -> &str;

    /// Returns the query for the existing columns, as `TABLE.COLUMN` in upper case, of the tables with a prefix and of the list of migrations.
    fn columns(prefix: &TablePrefix) -> String;

    /// Opens a connection, ready for use.
    fn connect(&self) -> Result<Self::Connection>;

    /// Opens a connection of the pool, which calls `make_durable` after its commits.
    fn connect_for_pool(&self) -> Result<Self::Connection> {
        self.connect()
    }

    /// Waits for the right to write; with `priority`, ahead of all others that wait in this process.
    fn write_lock(&self, priority: bool) -> QueryResult<Self::WriteLock>;

    /// Waits until what was committed survives a loss of power. Called after the right to write is released. By default it does already: a
    /// server waits within the commit.
    ///
    /// # Errors
    /// If the disk reports an error: what was committed may be lost.
    fn make_durable(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Returns whether the database ends with its last connection.
    fn is_in_memory(&self) -> bool {
        false
    }

    /// Brings the tables up to date, while no other process does so.
    fn migrate(connection: &mut Session<Self::Connection>) -> Result<(), MigrationFailed>;

    /// Runs a conversion of the tables, while no other process changes them: as one transaction, unless changes of tables commit by
    /// themselves.
    fn convert<T>(
        connection: &mut Session<Self::Connection>,
        work: impl FnOnce(&mut Session<Self::Connection>) -> Result<T, Failure>,
    ) -> Result<T, Failure>;

    /// Keeps all programs from creating executions, until what it returns is dropped. By default the transaction of the conversion does.
    ///
    /// # Errors
    /// When the tables are in use for a long time.
    fn lock_out_launches(
        &self,
        settings: &SessionSettings,
    ) -> Result<Option<Session<Self::Connection>>, Failure> {
        let _ = settings;
        Ok(None)
    }

    /// Replaces tables with ids by sequences, or the other way round, where Spring Batch does so in a later layout.
    fn convert_sequences(
        connection: &mut Session<Self::Connection>,
        to: RepositoryLayout,
    ) -> QueryResult<()> {
        let _ = (connection, to);
        Ok(())
    }

    /// Returns the damage of the tables and their indexes; `None` if there is none. A server checks its pages itself.
    fn damage(connection: &mut Session<Self::Connection>) -> QueryResult<Option<String>> {
        let _ = connection;
        Ok(None)
    }

    /// Inserts step executions.
    fn insert_steps(connection: &mut Session<Self::Connection>, steps: &[NewStep<'_>]) -> QueryResult<()>;

    /// Returns the expression for the database's clock, in milliseconds since 1970: hosts share it.
    fn now() -> FixedSql<Self::Clock> {
        fixed_sql()
    }

    /// Locks an instance until the end of the transaction, so that launches, restarts and stops of it happen one after the
    /// other. Returns `false` if it has been deleted. Locks are always taken in the order instance, executions, steps and
    /// their contexts, lease, to prevent deadlock.
    fn lock_instance(connection: &mut Session<Self::Connection>, instance: i64) -> QueryResult<bool>;

    /// Locks the executions of an instance, so that their runners neither start nor end anything.
    fn lock_executions(connection: &mut Session<Self::Connection>, instance: i64) -> QueryResult<()>;

    /// Locks an execution in shared mode, so that it is not closed while its runner starts something.
    fn share_execution(connection: &mut Session<Self::Connection>, execution: i64) -> QueryResult<()>;

    /// Locks a step execution, which waits for its writer.
    fn lock_step(connection: &mut Session<Self::Connection>, step: i64) -> QueryResult<()>;

    /// Returns the wanted tickets that are due, the oldest first, and locks them: the calls of other workers pass them over.
    fn lock_tickets(
        connection: &mut Session<Self::Connection>,
        wanted: &WantedTickets<'_>,
    ) -> QueryResult<Vec<TicketRow>>;

    /// Wakes the listeners of a channel, in all processes, when the transaction is committed.
    fn notify(connection: &mut Session<Self::Connection>, channel: Channel, about: &str) -> QueryResult<()> {
        let _ = (connection, channel, about);
        Ok(())
    }

    /// Listens to a channel, on a separate connection. By default the database notifies no process.
    fn listen(&self, channel: Channel, about: &str) -> Result<Option<Box<dyn Listener>>> {
        let _ = (channel, about);
        Ok(None)
    }

    /// Ends the sessions of an owner that is dead or silent, because its process does not end their transactions: their row
    /// locks would block the owner's successor. By default there are no sessions: locks of a file end with their process.
    // Spec: OP-35
    fn end_sessions(connection: &mut Session<Self::Connection>, owner: &str) -> QueryResult<()> {
        let _ = (connection, owner);
        Ok(())
    }

    /// Returns a hint to add to the error of a statement that timed out waiting for a locked row: the sessions that may hold the lock.
    /// `None` for any other error.
    fn lock_hint(connection: &mut Session<Self::Connection>, error: &DieselError) -> Option<String> {
        let _ = (connection, error);
        None
    }

    /// Ends a step execution and begins another one by one statement. Returns 0 if one of the rows had another VERSION. Without it, there
    /// are two statements in a transaction.
    const END_AND_BEGIN: Option<EndAndBegin<Self::Connection>> = None;

    /// Updates the two rows of a chunk that commits: step execution and context.
    // Spec: CHUNK-LOOP-12, REPO-15, REPO-62
    fn update_chunk_rows(
        connection: &mut Session<Self::Connection>,
        rows: &ChunkRows<'_>,
    ) -> QueryResult<UpdatedRows>;
}

/// See `Backend::END_AND_BEGIN`.
pub(super) type EndAndBegin<C> = fn(&mut Session<C>, &EndedStep<'_>, &StartedStep) -> QueryResult<usize>;

/// A step execution that ends.
pub(super) struct EndedStep<'a> {
    pub(super) id: i64,
    /// The VERSION that the row must have.
    pub(super) version: i64,
    pub(super) status: &'static str,
    pub(super) counters: StepCounters,
    pub(super) exit_code: &'a str,
    pub(super) exit_message: String,
    pub(super) now: DbTimestamp,
}

/// A step execution that becomes STARTED.
pub(super) struct StartedStep {
    pub(super) id: i64,
    /// The VERSION that the row must have.
    pub(super) version: i64,
    pub(super) now: DbTimestamp,
}

/// The sequences of ids.
#[derive(Clone, Copy)]
pub(super) enum Sequence {
    Instance,
    Execution,
    Step,
}

/// A step execution that is inserted.
#[derive(Clone, Copy)]
pub(super) struct NewStep<'a> {
    pub(super) id: i64,
    pub(super) name: &'a str,
    pub(super) job_execution: i64,
    pub(super) status: BatchStatus,
    pub(super) now: DbTimestamp,
}

/// The values of a chunk's commit for the rows of its step.
pub(super) struct ChunkRows<'a> {
    pub(super) step: StepExecutionId,
    /// The VERSION that the row must have.
    pub(super) version: i64,
    pub(super) counters: StepCounters,
    pub(super) context: &'a StoredContext,
    pub(super) now: DbTimestamp,
}

/// The numbers of rows that a chunk has updated.
pub(super) struct UpdatedRows {
    /// 0 if VERSION was different; then nothing is written.
    pub(super) steps: usize,
    pub(super) contexts: usize,
    /// True if the transaction of the writer has ended before; then nothing is written.
    pub(super) has_ended: bool,
}
