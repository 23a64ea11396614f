//! A database of sqlx as a destination.
// Spec: MARK-02, MARK-04, MARK-05, MARK-08, MARK-09, MARK-11

use std::sync::Arc;

use batch_runtime::BatchError;
use batch_runtime::destination::{
    Advance, Destination, Marker, MarkerSql, block_on, first_fence, session_name,
};
use sqlx::{Connection, Error, Pool, Transaction};
use tokio::runtime::Handle;

use crate::database::{MarkerRow, SqlxDatabase, Value};

/// A database that a writer writes to exactly once by sqlx.
///
/// The writer returns it from its `#[destination]` method. `#[write_items]` takes the transaction, and neither commits it nor rolls it
/// back. The table `BATCH_MARKER` is created in the database when a step first needs it.
/// [`Destination`] says what a crash does at each moment.
///
/// A destination opens one connection besides those of the pool, with the pool's options, and closes it after the step: each running
/// step, and each running partition, has one. On PostgreSQL its application name is `batch-marker ..`, on MySQL it holds a lock of this
/// name: if the process is suspended, the next owner of the step finds its session by the name, and ends it.
pub struct SqlxDestination<DB: SqlxDatabase> {
    /// The pool of the program, which has the options of the connection.
    pool: Pool<DB>,
    sql: MarkerSql,
    /// The name of the session. Each connection gets a new name, so that a claim after a loss ends the lost session, too.
    name: String,
    /// The connection; `None` before the first use and after a loss. Only a pool makes a transaction that borrows nothing. sqlx regards it as
    /// open until the connection is closed, and statements begin and end the transactions of the intervals on it.
    connection: Option<Transaction<'static, DB>>,
    /// Whether the last attempt to connect failed for another reason than the network, so that another attempt would fail as well.
    is_rejected: bool,
    /// Whether the transaction of an interval is open.
    is_open: bool,
}

/// Reveals at the commit whether the writer has ended the transaction: its savepoint is gone then.
const SET_GUARD: &str = "SAVEPOINT batch_interval";
const RELEASE_GUARD: &str = "RELEASE SAVEPOINT batch_interval";
const SET_SAVEPOINT: &str = "SAVEPOINT batch_write";
const RELEASE_SAVEPOINT: &str = "RELEASE SAVEPOINT batch_write";
const UNDO_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT batch_write; RELEASE SAVEPOINT batch_write";

impl<DB: SqlxDatabase> SqlxDestination<DB> {
    /// Creates the destination for the database of a pool. Connects later.
    pub fn new(pool: Pool<DB>) -> Self {
        Self::with_table(pool, MarkerSql::TABLE)
    }

    /// Creates the destination with another name of the table of its markers, which may have a schema before it. Repositories
    /// that run jobs of the same name into one database need separate tables.
    pub fn with_table(pool: Pool<DB>, table: impl Into<String>) -> Self {
        Self {
            pool,
            sql: MarkerSql::new(DB::DIALECT, &table.into()),
            name: String::new(),
            connection: None,
            is_rejected: false,
            is_open: false,
        }
    }

    /// Returns the connection, and opens it if there is none.
    fn connected(&mut self) -> Result<&mut Transaction<'static, DB>, BatchError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                self.name = session_name();
                let naming = self.sql.sessions.as_ref().map(|sessions| sessions.name);
                let connected = block_on(connect(&self.pool, naming, &self.name));
                let rejection = connected.as_ref().err().filter(|error| !is_of_network(error));
                self.is_rejected = rejection.is_some();
                connected.map_err(unreachable)?
            }
        };
        Ok(self.connection.insert(connection))
    }

    fn run(&mut self, statements: &str) -> Result<(), BatchError> {
        let connection = self.connected()?;
        Ok(block_on(DB::run_statements(connection, statements))?)
    }

    fn execute(&mut self, statement: &str, values: &[Value<'_>]) -> Result<u64, BatchError> {
        let connection = self.connected()?;
        Ok(block_on(DB::execute_with(connection, statement, values))?)
    }

    fn marker(&mut self, key: &str) -> Result<Option<MarkerRow>, BatchError> {
        let select = self.sql.select.clone();
        let connection = self.connected()?;
        Ok(block_on(DB::select_marker(connection, &select, key))?)
    }

    /// Returns the marker, and creates the table if it is not there.
    fn marker_in_table(&mut self, key: &str) -> Result<Option<MarkerRow>, BatchError> {
        self.connected()?;
        let unreadable = match self.marker(key) {
            Err(error) => error,
            found => return found,
        };
        let create = self.sql.create.clone();
        // Another partition may create it at the same time, so only the second attempt to read decides.
        let created = self.run(&create);
        self.marker(key).map_err(|_| {
            let cause = created.err().unwrap_or(unreadable);
            BatchError::msg(format_args!(
                "cannot read the markers in the destination, nor create their table ({}); create it by `{create}`",
                cause.chain()
            ))
        })
    }

    /// Ends the session of the owner before, which may be suspended and hold locks.
    fn end_session(&mut self, name: &str) -> Result<(), BatchError> {
        let Some(sessions) = self.sql.sessions.clone() else {
            return Ok(());
        };
        let connection = self.connected()?;
        let ids = block_on(DB::select_sessions(connection, sessions.find, name))?;
        for id in ids.into_iter().flatten() {
            if let Err(error) = self.run(&sessions.end_of(id)) {
                let error = error.chain();
                tracing::debug!(
                    error,
                    id,
                    "the session of an earlier owner of a marker cannot be ended"
                );
            }
        }
        Ok(())
    }

    /// Inserts the marker, or raises its fence.
    fn raise(&mut self, key: &str) -> Result<Option<MarkerRow>, BatchError> {
        let MarkerSql { raise, insert, .. } = self.sql.clone();
        self.run(self.sql.begin)?;
        self.is_open = true;
        let name = self.name.clone();
        // On MySQL an update of no row locks the gap between two keys, so partitions that start together would deadlock.
        let is_there = self.marker(key)?.is_some();
        if !is_there || self.execute(&raise, &[Value::Text(&name), Value::Text(key)])? == 0 {
            self.execute(
                &insert,
                &[Value::Text(key), Value::Text(&name), Value::Number(first_fence())],
            )?;
        }
        let raised = self.marker(key)?;
        self.commit_open()?;
        Ok(raised)
    }

    /// Releases the guard of the transaction.
    fn release_guard(&mut self) -> Result<(), BatchError> {
        self.run(RELEASE_GUARD).map_err(|error| match self.is_lost() {
            true => error,
            false => BatchError::msg(format_args!(
                "the transaction in the destination had ended before its commit ({}): `#[write_items]` must not commit it or roll it back, \
                 and has to return the error of a failed statement",
                error.chain()
            )),
        })
    }

    fn commit_open(&mut self) -> Result<(), BatchError> {
        self.run("COMMIT")?;
        self.is_open = false;
        Ok(())
    }

    /// Closes the connection, which rolls back in every state. Waits for nothing.
    fn close(&mut self) {
        let is_open = std::mem::take(&mut self.is_open);
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        // sqlx needs a runtime to close a connection. Outside of one, `block_on` cannot panic.
        let runtime = Handle::try_current().unwrap_or_else(|_| block_on(async { Handle::current() }));
        let _within = runtime.enter();
        runtime.spawn(async move {
            // For sqlx a transaction is open. PostgreSQL would log a warning about a ROLLBACK without one, and about a client that does not
            // wait for it.
            if !is_open {
                let _ = DB::run_statements(&mut connection, "BEGIN").await;
            }
            let _ = connection.rollback().await;
        });
    }
}

/// Opens a connection with the options of a pool, and names its session.
///
/// A connection of the pool itself would not do: partitions could take all of them to write, and wait for one to read; and the name of a
/// session would stay when the pool lends the connection to other code.
async fn connect<DB: SqlxDatabase>(
    pool: &Pool<DB>,
    naming: Option<&str>,
    name: &str,
) -> Result<Transaction<'static, DB>, Error> {
    if pool.is_closed() {
        return Err(Error::PoolClosed);
    }
    let options = pool.options().clone().max_connections(1).min_connections(0);
    let options = options.max_lifetime(None).idle_timeout(None);
    let single = options.connect_lazy_with(pool.connect_options().as_ref().clone());
    let mut connection = single.begin().await?;
    // A closed pool closes the connection when it is dropped, instead of keeping it.
    drop(single.close());
    DB::run_statements(&mut connection, "ROLLBACK").await?;
    if let Some(naming) = naming {
        DB::execute_with(&mut connection, naming, &[Value::Text(name)]).await?;
    }
    Ok(connection)
}

/// Returns whether a later attempt to connect may succeed. A pool repeats attempts that a starting server rejects.
fn is_of_network(error: &Error) -> bool {
    matches!(
        error,
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::PoolTimedOut | Error::WorkerCrashed
    )
}

fn unreachable(error: Error) -> BatchError {
    let error = BatchError::from(error);
    BatchError::msg(format_args!(
        "cannot connect to the destination ({}); check that its server runs and accepts one more connection than the \
         pool opens, for each running step and partition",
        error.chain()
    ))
}

impl<DB: SqlxDatabase> Destination for SqlxDestination<DB> {
    type Transaction = Transaction<'static, DB>;

    const HAS_SAVEPOINTS: bool = true;

    fn place(&self) -> String {
        // Pools of one database may have other users, schemas or hooks. All clones of a pool share its options.
        let options = self.pool.connect_options();
        let (kind, name) = (DB::NAME, DB::database_name(&options));
        format!("{kind} database {name}, sqlx pool {:p}", Arc::as_ptr(&options))
    }

    fn claim(&mut self, key: &str) -> Result<Marker, BatchError> {
        self.roll_back();
        if self.is_lost() {
            self.close();
        }
        if let Some((_, _, _, owner)) = self.marker_in_table(key)?
            && owner != self.name
        {
            self.end_session(&owner)?;
        }
        let raised = self.raise(key)?;
        let (fence, interval, state, _) =
            raised.ok_or_else(|| BatchError::msg("the marker disappeared from the destination"))?;
        Ok(Marker {
            fence,
            interval,
            state,
        })
    }

    fn transaction(&mut self) -> Result<&mut Transaction<'static, DB>, BatchError> {
        if !self.is_open {
            let begin = format!("{}; {SET_GUARD}", self.sql.begin);
            self.connected()?;
            // If it does not begin, the guard is missing at the commit.
            self.is_open = true;
            self.run(&begin)?;
        }
        self.connected()
    }

    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        self.transaction()?;
        self.release_guard()?;
        let statement = self.sql.advance.clone();
        let values = [
            Value::Number(advance.to),
            Value::Text(advance.state),
            Value::Text(advance.key),
            Value::Number(advance.fence),
            Value::Number(advance.from),
        ];
        let moved = self.execute(&statement, &values)? == 1;
        match moved {
            true => self.commit_open()?,
            false => self.roll_back(),
        }
        Ok(moved)
    }

    fn commit_unmarked(&mut self) -> Result<(), BatchError> {
        if !self.is_open {
            return Ok(());
        }
        self.release_guard()?;
        self.commit_open()
    }

    fn roll_back(&mut self) {
        if self.is_open && self.run("ROLLBACK").is_err() {
            self.close();
        }
        self.is_open = false;
    }

    fn set_savepoint(&mut self) -> Result<(), BatchError> {
        self.transaction()?;
        self.run(SET_SAVEPOINT)
    }

    fn release_savepoint(&mut self) -> Result<(), BatchError> {
        self.run(RELEASE_SAVEPOINT)
    }

    fn undo_to_savepoint(&mut self) -> Result<(), BatchError> {
        self.run(UNDO_TO_SAVEPOINT)
    }

    fn is_lost(&mut self) -> bool {
        // The runtime asks after any error, also of the writer, so the connection decides.
        match &mut self.connection {
            Some(connection) => block_on(connection.ping()).is_err(),
            None => !self.is_rejected,
        }
    }

    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError> {
        self.roll_back();
        let remove = self.sql.remove.clone();
        self.execute(&remove, &[Value::Text(key), Value::Number(fence)])?;
        Ok(())
    }
}

impl<DB: SqlxDatabase> Drop for SqlxDestination<DB> {
    fn drop(&mut self) {
        self.close();
    }
}
