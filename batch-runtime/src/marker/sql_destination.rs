//! A database of SQL as a destination, whatever its client is.
// Spec: MARK-02, MARK-04, MARK-05, MARK-08, MARK-09, MARK-11

use super::sql::{MarkerSql, SessionSql, SqlDialect, first_fence, session_name};
use super::{Advance, Destination, Marker, marker_key};
use crate::error::BatchError;
use crate::execution::JobInstance;

/// A database of SQL as a destination: a client that implements it is a [`Destination`].
///
/// The methods have one connection, which they open in [`connect`](Self::connect); all others are called when there is one.
// Spec: MARK-02
pub trait SqlDestination: Send + 'static {
    /// The transaction that `#[write_items]` takes: the connection.
    type Transaction: 'static;

    /// Returns what is known about the markers.
    fn markers(&mut self) -> &mut Markers;

    /// Returns the database for messages, without secrets.
    fn name(&self) -> String;

    /// Returns a text that differs between two destinations that cannot share a connection, as [`Destination::place`] does. By default the
    /// name.
    fn identity(&self) -> String {
        self.name()
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// If the database cannot be reached, with whether a later attempt may succeed.
    fn connect(&mut self) -> Result<(), ConnectError>;

    /// Closes the connection, if there is one, which rolls back in every state.
    fn disconnect(&mut self);

    /// Returns the connection, if it is open.
    fn connection(&mut self) -> Option<&mut Self::Transaction>;

    /// Returns whether the connection still works. May end a transaction, after an error in it.
    fn is_alive(&mut self) -> bool;

    /// Begins a transaction by these statements, with `; ` between them; by the means of the client if there are none.
    ///
    /// # Errors
    /// The error of the database.
    fn begin(&mut self, statements: &str) -> Result<(), BatchError>;

    /// Ends the transaction.
    ///
    /// # Errors
    /// The error of the database.
    fn end(&mut self, end: TransactionEnd) -> Result<(), BatchError>;

    /// Executes statements without parameters, with `; ` between them. Discards rows that they return.
    ///
    /// # Errors
    /// The error of the database.
    fn run(&mut self, statements: &str) -> Result<(), BatchError>;

    /// Executes a statement, and returns the number of rows that it has changed. Discards rows that it returns.
    ///
    /// # Errors
    /// The error of the database.
    fn execute(&mut self, statement: &str, values: &[SqlValue<'_>]) -> Result<u64, BatchError>;

    /// Selects a marker: its fence, its interval, its state and its session, in this order.
    ///
    /// # Errors
    /// The error of the database.
    fn select_marker(&mut self, select: &str, key: &str) -> Result<Option<MarkerRow>, BatchError>;

    /// Selects the ids of sessions: one column, without the values that are null.
    ///
    /// # Errors
    /// The error of the database.
    fn select_sessions(&mut self, find: &str, name: &str) -> Result<Vec<i64>, BatchError>;
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    /// It is committed.
    Commit,
    /// It is rolled back.
    RollBack,
}

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlValue<'a> {
    /// A text.
    Text(&'a str),
    /// A large integer.
    Number(i64),
}

/// A row of the table of markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerRow {
    /// The marker.
    pub marker: Marker,
    /// The name of the owner's session.
    pub session: String,
}

/// A connection that could not be opened.
#[derive(Debug)]
pub struct ConnectError {
    /// The error of the client.
    pub error: BatchError,
    /// Whether a later attempt may succeed.
    pub is_temporary: bool,
}

/// The markers of a destination: their statements, and the state of the connection.
#[derive(Debug)]
pub struct Markers {
    dialect: SqlDialect,
    table: String,
    sql: MarkerSql,
    /// The name of the session. Each connection gets a new name, so that a claim after a loss ends the lost session, too: the server may not
    /// have noticed the loss.
    session: String,
    /// Whether the transaction of an interval is open.
    is_open: bool,
    /// Whether there is no connection because it was lost.
    is_lost: bool,
}

impl Markers {
    /// The usual name of the table.
    pub const TABLE: &'static str = "BATCH_MARKER";

    /// Creates the description of the markers in a table, which may have a schema before its name.
    pub fn new(dialect: SqlDialect, table: impl Into<String>) -> Self {
        let table = table.into();
        Self {
            sql: MarkerSql::new(&dialect, &table),
            dialect,
            table,
            session: String::new(),
            is_open: false,
            is_lost: false,
        }
    }

    fn forget(&self, beginning: &str, instance: i64) -> String {
        MarkerSql::forget(&self.table, &self.dialect, beginning, instance)
    }
}

/// The savepoint that reveals at the commit whether the writer has ended the transaction: it no longer exists then.
const GUARD: &str = "batch_interval";
/// The savepoint of a write.
const WRITE: &str = "batch_write";

impl<D: SqlDestination> Destination for D {
    type Transaction = D::Transaction;

    const HAS_SAVEPOINTS: bool = true;

    fn place(&self) -> String {
        self.identity()
    }

    fn claim(&mut self, key: &str) -> Result<Marker, BatchError> {
        self.roll_back();
        if self.is_lost() {
            self.disconnect();
        }
        ensure_connected(self)?;
        let row = row_in_table(self, key)?;
        let own = self.markers().session.clone();
        if let Some(row) = row.filter(|row| row.session != own) {
            end_session(self, &row.session)?;
        }
        raise(self, key)
    }

    fn transaction(&mut self) -> Result<&mut Self::Transaction, BatchError> {
        ensure_connected(self)?;
        if !self.markers().is_open {
            let SqlDialect {
                begin,
                savepoints,
                guard,
                ..
            } = self.markers().dialect;
            let set_guard = guard.map_or_else(|| savepoints.set(GUARD), |guard| guard.set.to_owned());
            let begin = match begin {
                "" => set_guard,
                _ => format!("{begin}; {set_guard}"),
            };
            // Before the statements: without a guard, the commit fails.
            self.markers().is_open = true;
            self.begin(&begin)?;
        }
        self.connection().ok_or_else(disconnected)
    }

    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        Destination::transaction(self)?;
        let moves_only_if_guarded = self.markers().sql.check_guard.is_some();
        if !moves_only_if_guarded {
            check_guard(self)?;
        }
        #[cfg(debug_assertions)]
        let advance = &faulty(self, advance)?;
        let statement = self.markers().sql.advance.clone();
        let values = [
            SqlValue::Number(advance.to),
            SqlValue::Text(advance.state),
            SqlValue::Text(advance.key),
            SqlValue::Number(advance.fence),
            SqlValue::Number(advance.from),
        ];
        let moved = self.execute(&statement, &values);
        if moved.map_err(|error| not_moved(self, error))? == 1 {
            commit_open(self)?;
            return Ok(true);
        }
        if moves_only_if_guarded {
            check_guard(self)?;
        }
        self.roll_back();
        Ok(false)
    }

    fn commit_unmarked(&mut self) -> Result<(), BatchError> {
        if !self.markers().is_open {
            return Ok(());
        }
        check_guard(self)?;
        commit_open(self)
    }

    fn roll_back(&mut self) {
        let is_open = std::mem::take(&mut self.markers().is_open);
        if is_open && self.connection().is_some() && self.end(TransactionEnd::RollBack).is_err() {
            self.disconnect();
            // The next connection has another name, which only a claim makes known.
            self.markers().is_lost = true;
        }
    }

    fn set_savepoint(&mut self) -> Result<(), BatchError> {
        Destination::transaction(self)?;
        let set = self.markers().dialect.savepoints.set(WRITE);
        self.run(&set)
    }

    fn release_savepoint(&mut self) -> Result<(), BatchError> {
        release(self, WRITE)
    }

    fn undo_to_savepoint(&mut self) -> Result<(), BatchError> {
        let undo = self.markers().dialect.savepoints.undo(WRITE);
        self.run(&undo)
    }

    fn is_lost(&mut self) -> bool {
        self.markers().is_lost || self.connection().is_some() && !self.is_alive()
    }

    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError> {
        self.roll_back();
        ensure_connected(self)?;
        let remove = self.markers().sql.remove.clone();
        self.execute(&remove, &[SqlValue::Text(key), SqlValue::Number(fence)])?;
        Ok(())
    }
}

fn disconnected() -> BatchError {
    BatchError::msg("the destination is not connected")
}

/// Opens the connection, unless it is open, and names its session.
fn ensure_connected<D: SqlDestination>(destination: &mut D) -> Result<(), BatchError> {
    if destination.connection().is_some() {
        return Ok(());
    }
    if let Err(ConnectError { error, is_temporary }) = destination.connect() {
        destination.markers().is_lost = is_temporary;
        return Err(BatchError::msg(format_args!(
            "cannot connect to the destination `{}`: {}",
            destination.name(),
            error.chain()
        )));
    }
    let markers = destination.markers();
    markers.is_lost = false;
    markers.session = session_name();
    let session = markers.session.clone();
    if let Some((name, _)) = markers.sql.sessions.clone() {
        destination.execute(&name, &[SqlValue::Text(&session)])?;
    }
    Ok(())
}

fn row<D: SqlDestination>(destination: &mut D, key: &str) -> Result<Option<MarkerRow>, BatchError> {
    let select = destination.markers().sql.select.clone();
    destination.select_marker(&select, key)
}

/// Returns a marker, and creates the table if it is not there.
fn row_in_table<D: SqlDestination>(destination: &mut D, key: &str) -> Result<Option<MarkerRow>, BatchError> {
    let unreadable = match row(destination, key) {
        Err(error) => error,
        found => return found,
    };
    // Several owners may create it at the same time: only whether it is there then counts.
    let created = create_table(destination);
    row(destination, key).map_err(|_| {
        let cause = created.err().unwrap_or(unreadable).chain();
        let create = &destination.markers().sql.create.clone();
        let remedy = match cause.contains("locked") || cause.contains("imeout") {
            true => "another program may hold a lock there".to_owned(),
            false => format!("create it by `{create}`"),
        };
        BatchError::msg(format_args!(
            "cannot read the markers in the destination `{}`, nor create their table ({cause}); {remedy}",
            destination.name(),
        ))
    })
}

/// Creates the table of the markers, if it is not there.
pub(crate) fn create_table<D: SqlDestination>(destination: &mut D) -> Result<(), BatchError> {
    ensure_connected(destination)?;
    let create = destination.markers().sql.create.clone();
    destination.run(&create)
}

/// Removes the markers of an instance, for a purge. Does nothing if there is no table of markers.
///
/// # Errors
/// The errors of the database.
// Spec: MARK-10
pub fn forget_markers<D: SqlDestination>(
    destination: &mut D,
    instance: &JobInstance,
) -> Result<(), BatchError> {
    ensure_connected(destination)?;
    if row(destination, "").is_err() && destination.is_alive() {
        return Ok(());
    }
    let beginning = marker_key(&instance.job_name, &instance.job_key, "");
    let forget = destination.markers().forget(&beginning, instance.id.0);
    destination.execute(&forget, &[SqlValue::Text(&beginning)])?;
    Ok(())
}

/// Ends the session of the previous owner, which may be suspended and hold locks.
// Spec: MARK-11
fn end_session<D: SqlDestination>(destination: &mut D, name: &str) -> Result<(), BatchError> {
    let Markers { dialect, sql, .. } = destination.markers();
    let (Some(SessionSql { end, .. }), Some((_, find))) = (dialect.sessions, sql.sessions.clone()) else {
        return Ok(());
    };
    for id in destination.select_sessions(&find, name)? {
        if let Err(error) = destination.run(&end.replace("ID", &id.to_string())) {
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

/// Raises the fence of a marker, or inserts the marker.
// Spec: MARK-05
fn raise<D: SqlDestination>(destination: &mut D, key: &str) -> Result<Marker, BatchError> {
    let markers = destination.markers();
    let (begin, session) = (markers.dialect.begin, markers.session.clone());
    let MarkerSql { raise, insert, .. } = markers.sql.clone();
    markers.is_open = true;
    destination.begin(begin)?;
    let (key_value, session) = (SqlValue::Text(key), SqlValue::Text(&session));
    // On MySQL an update of no row may lock the gap between two keys, so that partitions that start together would deadlock.
    let is_there = row(destination, key)?.is_some();
    if !is_there || destination.execute(&raise, &[session, key_value])? == 0 {
        destination.execute(&insert, &[key_value, session, SqlValue::Number(first_fence())])?;
    }
    let raised = row(destination, key)?;
    commit_open(destination)?;
    let raised = raised.ok_or_else(|| BatchError::msg("the marker disappeared from the destination"))?;
    Ok(raised.marker)
}

fn commit_open<D: SqlDestination>(destination: &mut D) -> Result<(), BatchError> {
    destination.end(TransactionEnd::Commit)?;
    destination.markers().is_open = false;
    Ok(())
}

/// Returns the error of a move. PostgreSQL executes no other statement after an error in a transaction.
fn not_moved<D: SqlDestination>(destination: &mut D, error: BatchError) -> BatchError {
    if !destination.is_alive() {
        return error;
    }
    BatchError::msg(format_args!(
        "cannot update the marker in the destination `{}`: {}; if an earlier statement has failed, {RETURN_ERRORS}",
        destination.name(),
        error.chain()
    ))
}

const RETURN_ERRORS: &str = "the writer must not commit or roll back the transaction, and has to return the error of a failed statement";

/// Releases a savepoint, where the end of the transaction does not.
fn release<D: SqlDestination>(destination: &mut D, savepoint: &str) -> Result<(), BatchError> {
    match destination.markers().dialect.savepoints.release(savepoint) {
        Some(statement) => destination.run(&statement),
        None => Ok(()),
    }
}

/// Checks that the writer has not ended the transaction, and releases the savepoint that shows it, if there is one.
fn check_guard<D: SqlDestination>(destination: &mut D) -> Result<(), BatchError> {
    let checked = match destination.markers().sql.check_guard.clone() {
        Some(check) => destination.run(&check),
        None => release(destination, GUARD),
    };
    let Err(error) = checked else {
        return Ok(());
    };
    if !destination.is_alive() {
        return Err(error);
    }
    Err(BatchError::msg(format_args!(
        "the writer has ended the transaction in the destination `{}` before its commit: {RETURN_ERRORS}",
        destination.name()
    )))
}

/// The faults `split-marker` and `no-marker-fence`.
#[cfg(debug_assertions)]
fn faulty<'a, D: SqlDestination>(
    destination: &mut D,
    advance: &Advance<'a>,
) -> Result<Advance<'a>, BatchError> {
    use crate::failpoints::{Fault, is_on};
    let mut advance = *advance;
    if is_on(Fault::SplitMarker) {
        commit_open(destination)?;
        Destination::transaction(destination)?;
    }
    if is_on(Fault::NoMarkerFence)
        && let Some(row) = row(destination, advance.key)?
    {
        advance.fence = row.marker.fence;
    }
    Ok(advance)
}
