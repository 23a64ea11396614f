//! Markers of destinations: databases beside the repository whose items are written exactly once.
// Spec: MARK-01 to MARK-12, D-109

mod client;
mod erased;
mod sql;
mod sql_destination;

pub use client::DestinationClient;
pub use erased::{AnyDestination, DestinationReturn};
pub use sql::{GuardSql, SavepointWords, SessionSql, SqlDialect};
pub(crate) use sql_destination::create_table;
pub use sql_destination::{
    ConnectError, MarkerRow, Markers, SqlDestination, SqlValue, TransactionEnd, forget_markers,
};

use crate::error::BatchError;

/// A place that commits atomically and keeps a [`Marker`], so that a step writes to it exactly once although the job repository is
/// elsewhere.
///
/// A writer returns its destination from its `#[destination]` method, and `#[write_items]` takes the destination's transaction as its
/// second parameter. Each interval of the step has one such transaction. A client of a SQL database implements [`SqlDestination`]
/// instead, which has the statements about markers. What a crash does:
///
/// | moment | marker | repository | the next start |
/// |---|---|---|---|
/// | before [`commit`](Self::commit) has committed | n-1 | n-1 | the transaction is rolled back; the items of interval n are read again |
/// | between this commit and the commit of the repository | n | n-1 | the marker has the checkpoints of interval n: the repository is set to them, and no item is read again |
/// | after the commit of the repository | n | n | continues after interval n |
/// | after the step has completed, before [`remove`](Self::remove) | n | complete | the step does not run again; its marker stays, and matters only to a new instance with the same parameters, once this one is purged |
///
/// A process that was suspended and wakes up when another has taken the step over commits nothing: the other one has raised the fence
/// of the marker before it has read an item, and `commit` compares it.
///
/// An error of a method fails the step. If [`is_lost`](Self::is_lost) then returns true after an interval has started, the step
/// opens again at the marker instead, unless the repository is in memory.
// Spec: MARK-01
pub trait Destination: Send + 'static {
    /// The transaction that `#[write_items]` takes.
    type Transaction: 'static;

    /// Whether a failed write can be undone alone, by [`set_savepoint`](Self::set_savepoint). If not, the interval is rolled back, and
    /// its items are written one by one to find the bad one.
    const HAS_SAVEPOINTS: bool = false;

    /// Returns the database for messages, without secrets, and for writers that are made of others: two destinations with the same place
    /// are one. Empty if it has no such text.
    fn place(&self) -> String {
        String::new()
    }

    /// Raises the fence of a marker by one in a separate transaction, and returns the marker. Creates a missing marker with a random fence, interval 0
    /// and a state without a `{`, such as `-`. The step calls it before it opens the reader and the writer, and again after the connection was lost, to
    /// open another one. Where the database permits it, ends the session of the previous owner, which may be suspended and hold locks.
    ///
    /// # Errors
    /// If the destination cannot be reached, or keeps no markers.
    fn claim(&mut self, key: &str) -> Result<Marker, BatchError>;

    /// Returns the transaction of the interval, and begins it if it is not open.
    ///
    /// # Errors
    /// If it cannot begin.
    fn transaction(&mut self) -> Result<&mut Self::Transaction, BatchError>;

    /// Moves the marker in the transaction of the interval, which it begins if nothing was written, and commits. Returns `false`, and
    /// rolls back, if the marker has another fence or interval than `advance` expects: another process has taken over.
    ///
    /// # Errors
    /// If the transaction is not committed, or if the outcome is unknown; the next `claim` returns the committed interval.
    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError>;

    /// Commits the transaction of the interval, if there is one, without a marker: the job repository is in memory, so nothing can be
    /// continued after a crash.
    ///
    /// # Errors
    /// If the transaction is not committed.
    fn commit_unmarked(&mut self) -> Result<(), BatchError>;

    /// Rolls the transaction of the interval back, if there is one.
    fn roll_back(&mut self);

    /// Sets the savepoint for the next write. Required if [`HAS_SAVEPOINTS`](Self::HAS_SAVEPOINTS), as the next two.
    ///
    /// # Errors
    /// If the transaction cannot begin, or has ended.
    fn set_savepoint(&mut self) -> Result<(), BatchError> {
        Err(no_savepoints())
    }

    /// Releases the savepoint.
    ///
    /// # Errors
    /// If the transaction has ended.
    fn release_savepoint(&mut self) -> Result<(), BatchError> {
        Err(no_savepoints())
    }

    /// Rolls back to the savepoint, and releases it.
    ///
    /// # Errors
    /// If the transaction has ended.
    fn undo_to_savepoint(&mut self) -> Result<(), BatchError> {
        Err(no_savepoints())
    }

    /// Returns whether the connection was lost. Asked after an error.
    fn is_lost(&mut self) -> bool {
        false
    }

    /// Removes a marker that still has this fence. Called after the repository has recorded that the step is complete.
    ///
    /// # Errors
    /// If the marker may still be there. The runtime logs it.
    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError>;
}

fn no_savepoints() -> BatchError {
    BatchError::msg("the destination has no savepoints")
}

/// The row that a destination keeps for a step, or for each of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Changes with each owner. A marker begins with a random one, so that no owner of an earlier marker has it.
    pub fence: i64,
    /// The number of intervals whose items the destination has committed.
    pub interval: i64,
    /// The state that the repository stores for the last of them, as JSON; before the first, a text without a `{`.
    pub state: String,
}

/// Returns the key of the marker of a step.
pub(crate) fn marker_key(job: &str, job_key: &str, step: &str) -> String {
    format!("{job}/{job_key}/{step}")
}

/// The move of a marker.
#[derive(Clone, Copy, Debug)]
pub struct Advance<'a> {
    /// The key of the marker, of at most 250 characters.
    pub key: &'a str,
    /// The fence that the marker must have.
    pub fence: i64,
    /// The interval that the marker must have.
    pub from: i64,
    /// The interval that it gets.
    pub to: i64,
    /// The state that it gets.
    pub state: &'a str,
}
