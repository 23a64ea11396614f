//! A database of sqlx as a destination.
// Spec: MARK-02, MARK-08, MARK-11

use std::sync::Arc;

use batch_runtime::BatchError;
use batch_runtime::destination::{
    ConnectError, Marker, MarkerRow, Markers, SqlDestination, SqlValue, TransactionEnd, block_on,
};
use sqlx::{Connection, Error, Pool, Transaction};
use tokio::runtime::Handle;

use crate::database::SqlxDatabase;

/// A database that a writer writes to exactly once by sqlx.
///
/// The writer returns it from its `#[destination]` method. `#[write_items]` takes the transaction, and neither commits it nor rolls it
/// back. The table `BATCH_MARKER` is created in the database when a step first needs it.
/// [`Destination`](batch_runtime::destination::Destination) says what a crash does at each moment.
///
/// A destination opens one connection outside the pool, with the pool's options, and closes it after the step: each running
/// step, and each running partition, has one. On PostgreSQL its application name is `batch-marker ..`, on MySQL it holds a lock of this
/// name: if the process is suspended, the next owner of the step finds its session by the name, and ends it.
pub struct SqlxDestination<DB: SqlxDatabase> {
    /// The pool of the program, which has the options of the connection.
    pool: Pool<DB>,
    markers: Markers,
    /// The connection; `None` before the first use and after a loss. Only a pool makes a transaction that borrows nothing. sqlx regards it as
    /// open until the connection is closed, and statements begin and end the transactions of the intervals on it.
    connection: Option<Transaction<'static, DB>>,
    /// Whether such a transaction is open.
    is_open: bool,
}

impl<DB: SqlxDatabase> SqlxDestination<DB> {
    /// Creates the destination for the database of a pool. Connects later.
    pub fn new(pool: Pool<DB>) -> Self {
        Self::with_table(pool, Markers::TABLE)
    }

    /// Creates the destination with another name of the table of its markers, which may have a schema before it. Repositories
    /// that run jobs of the same name into one database need separate tables.
    pub fn with_table(pool: Pool<DB>, table: impl Into<String>) -> Self {
        Self {
            pool,
            markers: Markers::new(DB::DIALECT, table),
            connection: None,
            is_open: false,
        }
    }

    fn connected(&mut self) -> Result<&mut DB::Connection, BatchError> {
        let connection = self.connection.as_mut();
        Ok(&mut **connection.ok_or_else(|| BatchError::msg("the destination is not connected"))?)
    }
}

/// Opens a connection with the options of a pool.
///
/// A connection of the pool itself would not do: partitions could take all of them to write, and wait for one to read; and the name of a
/// session would stay when the pool lends the connection to other code.
async fn connect<DB: SqlxDatabase>(pool: &Pool<DB>) -> Result<Transaction<'static, DB>, Error> {
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
    Ok(connection)
}

/// Returns whether a later attempt to connect may succeed. A pool repeats attempts that a starting server rejects.
fn is_of_network(error: &Error) -> bool {
    matches!(
        error,
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::PoolTimedOut | Error::WorkerCrashed
    )
}

impl<DB: SqlxDatabase> SqlDestination for SqlxDestination<DB> {
    type Transaction = Transaction<'static, DB>;

    fn markers(&mut self) -> &mut Markers {
        &mut self.markers
    }

    fn name(&self) -> String {
        DB::database_name(&self.pool.connect_options())
    }

    fn identity(&self) -> String {
        // Pools of one database may have other users, schemas or hooks. All clones of a pool share its options.
        let pool = Arc::as_ptr(&self.pool.connect_options());
        format!("{} database {}, sqlx pool {pool:p}", DB::NAME, self.name())
    }

    fn connect(&mut self) -> Result<(), ConnectError> {
        let connected = block_on(connect(&self.pool)).map_err(|error| ConnectError {
            is_temporary: is_of_network(&error),
            error: BatchError::msg(format_args!(
                "{}; check that the server runs, and that its limit of connections allows the pool, and one connection for each running step and partition",
                BatchError::from(error).chain()
            )),
        });
        self.connection = Some(connected?);
        Ok(())
    }

    /// Waits for nothing.
    fn disconnect(&mut self) {
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

    fn connection(&mut self) -> Option<&mut Transaction<'static, DB>> {
        self.connection.as_mut()
    }

    fn is_alive(&mut self) -> bool {
        self.connected()
            .is_ok_and(|connection| block_on(connection.ping()).is_ok())
    }

    fn begin(&mut self, statements: &str) -> Result<(), BatchError> {
        self.is_open = true;
        self.run(statements)
    }

    fn end(&mut self, end: TransactionEnd) -> Result<(), BatchError> {
        self.run(match end {
            TransactionEnd::Commit => "COMMIT",
            TransactionEnd::RollBack => "ROLLBACK",
        })?;
        self.is_open = false;
        Ok(())
    }

    fn run(&mut self, statements: &str) -> Result<(), BatchError> {
        Ok(block_on(DB::run_statements(self.connected()?, statements))?)
    }

    fn execute(&mut self, statement: &str, values: &[SqlValue<'_>]) -> Result<u64, BatchError> {
        Ok(block_on(DB::execute_with(self.connected()?, statement, values))?)
    }

    fn select_marker(&mut self, select: &str, key: &str) -> Result<Option<MarkerRow>, BatchError> {
        let found = block_on(DB::select_marker(self.connected()?, select, key))?;
        Ok(found.map(|(fence, interval, state, session)| MarkerRow {
            marker: Marker {
                fence,
                interval,
                state,
            },
            session,
        }))
    }

    fn select_sessions(&mut self, find: &str, name: &str) -> Result<Vec<i64>, BatchError> {
        let found = block_on(DB::select_sessions(self.connected()?, find, name))?;
        Ok(found.into_iter().flatten().collect())
    }
}

impl<DB: SqlxDatabase> Drop for SqlxDestination<DB> {
    fn drop(&mut self) {
        self.disconnect();
    }
}
