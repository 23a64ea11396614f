//! A database beside the repository, as a destination.
// Spec: MARK-02, MARK-03, MARK-11

use diesel::connection::{AnsiTransactionManager, TransactionManager};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};

use super::connection::{DatabaseConnection, RepositoryConnection};
use crate::error::BatchError;
use crate::execution::JobInstance;
use crate::marker::{
    Advance, Destination, Marker, MarkerSql, SessionSql, SqlDialect, first_fence, marker_key, session_name,
};
use crate::repository::{DatabaseKind, RepositoryError, RepositoryUrl};

/// A database of another URL than the repository's, to which a writer writes exactly once by diesel.
///
/// The writer returns it from its `#[destination]` method, and takes its connection, inside the transaction. The table `BATCH_MARKER`
/// is created there when a step first needs it. [`Destination`] says what a crash does at each moment.
///
/// ```
/// use batch_runtime::destination::DatabaseDestination;
/// use batch_runtime::prelude::*;
/// use diesel::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Postings {
///     #[batch_property]
///     ledger: String,
/// }
///
/// #[item_writer("Postings")]
/// impl Postings {
///     #[destination]
///     fn ledger(&self) -> Result<DatabaseDestination, BatchError> {
///         DatabaseDestination::new(&self.ledger)
///     }
///
///     #[write_items]
///     fn post(&mut self, cents: &[i64], tx: &mut RepositoryConnection) -> Result<(), BatchError> {
///         for cents in cents {
///             diesel::sql_query(format!("INSERT INTO posting VALUES ({cents})")).execute(tx.sqlite()?)?;
///         }
///         Ok(())
///     }
/// }
/// ```
pub struct DatabaseDestination {
    url: RepositoryUrl,
    table: String,
    dialect: SqlDialect,
    sql: MarkerSql,
    /// The name of the session.
    name: String,
    /// `None` before the first use, and after a loss.
    connection: Option<RepositoryConnection>,
    /// Whether the transaction of an interval is open.
    is_open: bool,
    is_lost: bool,
}

/// Calls a function of diesel with the connection of the current database.
macro_rules! on {
    ($connection:expr, $diesel:ident => $what:expr) => {
        match $connection.any() {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite($diesel) => $what,
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres($diesel) => $what,
            #[cfg(feature = "mysql")]
            DatabaseConnection::Mysql($diesel) => $what,
        }
    };
}

/// Reveals at the commit whether the writer has ended the transaction: its savepoint is gone then.
const SET_GUARD: &str = "SAVEPOINT batch_interval";
const RELEASE_GUARD: &str = "RELEASE SAVEPOINT batch_interval";
const SET_SAVEPOINT: &str = "SAVEPOINT batch_write";
const RELEASE_SAVEPOINT: &str = "RELEASE SAVEPOINT batch_write";
const UNDO_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT batch_write; RELEASE SAVEPOINT batch_write";

#[derive(QueryableByName)]
struct MarkerRow {
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
        Self::with_table(url, MarkerSql::TABLE)
    }

    /// Creates the destination with another name of the table of its markers, which may have a schema before it. Repositories
    /// that run jobs of the same name into one database need tables of their own.
    ///
    /// # Errors
    /// When the URL names no database.
    pub fn with_table(url: RepositoryUrl, table: &str) -> Result<Self, BatchError> {
        let dialect = match url.database() {
            DatabaseKind::Sqlite => SqlDialect::Sqlite,
            DatabaseKind::Postgresql => SqlDialect::Postgres,
            DatabaseKind::Mysql => SqlDialect::Mysql,
            DatabaseKind::Memory => {
                return Err(BatchError::msg(
                    "cannot write to `memory:`: expected the URL of a PostgreSQL, MySQL or SQLite database",
                ));
            }
        };
        Ok(Self {
            url,
            table: table.to_owned(),
            dialect,
            sql: MarkerSql::new(dialect, table),
            name: session_name(),
            connection: None,
            is_open: false,
            is_lost: false,
        })
    }

    /// Creates the table of the markers, if it is not there. A step creates it by itself, if the database lets it.
    ///
    /// # Errors
    /// When the database cannot be reached, or the user may not create tables.
    pub fn create_table(&mut self) -> Result<(), BatchError> {
        let create = self.sql.create.clone();
        self.execute(&create)
    }

    /// Removes the markers of an instance, for a purge. Does nothing if there is no table of markers.
    // Spec: MARK-10
    pub(crate) fn forget(&mut self, instance: &JobInstance) -> Result<(), BatchError> {
        self.connected()?;
        if self.row("").is_err() && !self.is_lost() {
            return Ok(());
        }
        let beginning = marker_key(&instance.job_name, &instance.job_key, "");
        let forget = MarkerSql::forget(&self.table, self.dialect, &beginning, instance.id.0);
        let forget = diesel::sql_query(forget).bind::<Text, _>(beginning);
        let connection = self.connected()?;
        on!(connection, diesel => forget.execute(diesel))?;
        Ok(())
    }

    /// Returns the connection, and opens it if there is none.
    fn connected(&mut self) -> Result<&mut RepositoryConnection, BatchError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = self.url.connect().map_err(|error| {
                    self.is_lost = true;
                    BatchError::msg(format_args!(
                        "cannot connect to the destination of the writer: {error}"
                    ))
                })?;
                // A new one, so that the next claim ends the session that was lost: the server may not have noticed.
                self.name = session_name();
                if let Some(sessions) = &self.sql.sessions {
                    let naming = diesel::sql_query(sessions.name).bind::<Text, _>(&self.name);
                    on!(connection, diesel => naming.execute(diesel))?;
                }
                connection
            }
        };
        Ok(self.connection.insert(connection))
    }

    fn begin(&mut self, begin: &str) -> Result<&mut RepositoryConnection, BatchError> {
        let connection = self.connected()?;
        let begun = on!(connection, diesel => AnsiTransactionManager::begin_transaction_sql(diesel, begin));
        if let Err(error) = begun {
            // A connection that has idled may be lost.
            self.is_lost = self.sql.sessions.is_some();
            return Err(error.into());
        }
        self.is_open = true;
        self.connected()
    }

    fn commit_open(&mut self) -> Result<(), BatchError> {
        let connection = self.connected()?;
        let committed = on!(connection, diesel => AnsiTransactionManager::commit_transaction(diesel));
        committed?;
        self.is_open = false;
        Ok(())
    }

    fn execute(&mut self, statement: &str) -> Result<(), BatchError> {
        Ok(self.connected()?.batch_execute(statement)?)
    }

    fn row(&mut self, key: &str) -> Result<Option<MarkerRow>, BatchError> {
        let select = diesel::sql_query(self.sql.select.clone()).bind::<Text, _>(key);
        let connection = self.connected()?;
        Ok(on!(connection, diesel => select.get_result(diesel).optional())?)
    }

    /// Creates the table of the markers, if it is not there.
    fn ensure_table(&mut self, key: &str) -> Result<(), BatchError> {
        self.connected()?;
        let Err(error) = self.row(key) else {
            return Ok(());
        };
        let create = self.sql.create.clone();
        // Several owners may create it at the same time: only whether it is there then counts.
        let created = self.create_table();
        match self.row(key) {
            Ok(_) => Ok(()),
            Err(_) => Err(BatchError::msg(format_args!(
                "cannot read the markers in `{}` ({}), nor create their table ({}); create it by `{create}`",
                self.url,
                error.chain(),
                created
                    .err()
                    .map_or_else(|| "created".to_owned(), |error| error.chain()),
            ))),
        }
    }

    /// Ends the session of the owner before, which may be suspended and hold locks.
    fn end_session_before(&mut self, key: &str) -> Result<(), BatchError> {
        let Some(sessions) = self.sql.sessions.clone() else {
            return Ok(());
        };
        let Some(row) = self.row(key)?.filter(|row| row.session_name != self.name) else {
            return Ok(());
        };
        let find = diesel::sql_query(sessions.find).bind::<Text, _>(row.session_name);
        let connection = self.connected()?;
        let found: Vec<SessionRow> = on!(connection, diesel => find.load(diesel))?;
        for id in found.into_iter().filter_map(|session| session.id) {
            self.end_session(&sessions, id);
        }
        Ok(())
    }

    fn end_session(&mut self, sessions: &SessionSql, id: i64) {
        if let Err(error) = self.execute(&sessions.end_of(id)) {
            let error = error.chain();
            tracing::debug!(
                error,
                id,
                "the session of an earlier owner of a marker cannot be ended"
            );
        }
    }

    fn claim_row(&mut self, key: &str) -> Result<Marker, BatchError> {
        self.begin(self.sql.begin)?;
        let raise = diesel::sql_query(self.sql.raise.clone())
            .bind::<Text, _>(self.name.clone())
            .bind::<Text, _>(key);
        let connection = self.connected()?;
        if on!(connection, diesel => raise.execute(diesel))? == 0 {
            let insert = diesel::sql_query(self.sql.insert.clone())
                .bind::<Text, _>(key)
                .bind::<Text, _>(self.name.clone())
                .bind::<BigInt, _>(first_fence());
            let connection = self.connected()?;
            on!(connection, diesel => insert.execute(diesel))?;
        }
        let row = self.row(key)?.ok_or(RepositoryError::Fault)?;
        self.commit_open()?;
        Ok(Marker {
            fence: row.fence,
            interval: row.interval_number,
            state: row.state,
        })
    }

    fn advance(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        self.transaction()?;
        self.execute(RELEASE_GUARD)
            .map_err(|_| BatchError::from(RepositoryError::TransactionEnded))?;
        #[cfg(debug_assertions)]
        let advance = &self.faulty(advance)?;
        let statement = diesel::sql_query(self.sql.advance.clone())
            .bind::<BigInt, _>(advance.to)
            .bind::<Text, _>(advance.state)
            .bind::<Text, _>(advance.key)
            .bind::<BigInt, _>(advance.fence)
            .bind::<BigInt, _>(advance.from);
        let connection = self.connected()?;
        let moved = on!(connection, diesel => statement.execute(diesel))? == 1;
        match moved {
            true => self.commit_open()?,
            false => self.roll_back(),
        }
        Ok(moved)
    }

    /// The faults `split-marker` and `no-marker-fence`.
    #[cfg(debug_assertions)]
    fn faulty<'a>(&mut self, advance: &Advance<'a>) -> Result<Advance<'a>, BatchError> {
        use crate::failpoints::{Fault, is_on};
        let mut advance = *advance;
        if is_on(Fault::SplitMarker) {
            self.commit_open()?;
            self.begin(self.sql.begin)?;
        }
        if is_on(Fault::NoMarkerFence)
            && let Some(row) = self.row(advance.key)?
        {
            advance.fence = row.fence;
        }
        Ok(advance)
    }

    /// Closes the connection, which rolls back in every state.
    fn close(&mut self) {
        self.connection = None;
        self.is_open = false;
    }
}

impl Destination for DatabaseDestination {
    type Transaction = RepositoryConnection;

    const HAS_SAVEPOINTS: bool = true;

    fn place(&self) -> String {
        self.url.to_string()
    }

    fn claim(&mut self, key: &str) -> Result<Marker, BatchError> {
        if self.is_lost {
            self.close();
            self.is_lost = false;
        }
        self.roll_back();
        self.ensure_table(key)?;
        self.end_session_before(key)?;
        self.claim_row(key)
    }

    fn transaction(&mut self) -> Result<&mut RepositoryConnection, BatchError> {
        if !self.is_open {
            self.begin(&format!("{}; {SET_GUARD}", self.sql.begin))?;
        }
        self.connected()
    }

    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        self.advance(advance)
    }

    fn commit_unmarked(&mut self) -> Result<(), BatchError> {
        if !self.is_open {
            return Ok(());
        }
        self.execute(RELEASE_GUARD)
            .map_err(|_| BatchError::from(RepositoryError::TransactionEnded))?;
        self.commit_open()
    }

    fn roll_back(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let rolled_back = on!(connection, diesel => AnsiTransactionManager::rollback_transaction(diesel));
        match rolled_back {
            Ok(()) => self.connection = Some(connection),
            // Closing a connection rolls back in every state. The next one has another name, which only a claim makes known.
            Err(_) => self.is_lost = true,
        }
    }

    fn set_savepoint(&mut self) -> Result<(), BatchError> {
        self.transaction()?;
        self.execute(SET_SAVEPOINT)
    }

    fn release_savepoint(&mut self) -> Result<(), BatchError> {
        self.execute(RELEASE_SAVEPOINT)
    }

    fn undo_to_savepoint(&mut self) -> Result<(), BatchError> {
        self.execute(UNDO_TO_SAVEPOINT)
    }

    fn is_lost(&mut self) -> bool {
        let is_server = self.sql.sessions.is_some();
        if !self.is_lost && is_server {
            let connection = self.connection.as_mut();
            self.is_lost = connection.is_some_and(|connection| connection.batch_execute("ROLLBACK").is_err());
        }
        self.is_lost
    }

    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError> {
        self.roll_back();
        let remove = diesel::sql_query(self.sql.remove.clone())
            .bind::<Text, _>(key)
            .bind::<BigInt, _>(fence);
        let connection = self.connected()?;
        on!(connection, diesel => remove.execute(diesel))?;
        Ok(())
    }
}
