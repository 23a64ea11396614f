//! A checkpoint interval, and how it ends.

use std::time::Duration;

use super::super::call::{Failure, Interrupt};
use super::listeners::ChunkListeners;
use crate::checkpoint::CheckpointInfo;
use crate::execution::StepExecution;
use crate::repository::{ChunkTransaction, RepositoryError, StepState};

/// A checkpoint interval in progress.
pub(super) struct Interval<'r, 'l> {
    pub(super) step: &'r mut StepExecution,
    /// The checkpoints of the last committed interval, until this one commits.
    pub(super) state: &'r mut StepState,
    pub(super) listeners: &'r mut ChunkListeners<'l>,
    pub(super) tx: ChunkTransaction,
    pub(super) reads: usize,
    /// The number of items that were read, or skipped by the reader, before this interval: since the step began in its instance.
    pub(super) read_before: u64,
    /// The reader's position at the end of this interval, once the next one is being read.
    pub(super) position: Option<CheckpointInfo>,
    /// The time of the write or commit that failed, once all items were there.
    pub(super) failed_after: Option<Duration>,
}

/// The reason for the end of an interval.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IntervalEnd {
    CheckpointDue,
    EndOfInput,
    Stop,
}

/// The reason for the rollback of an interval.
pub(super) enum RolledBack {
    /// The step ends FAILED, or may not write any more.
    Failed(Interrupt),
    /// A stop was requested before a retry; `open` if something is left to roll back.
    Stopped { open: bool },
    /// The items were not kept, so they are read again.
    // Spec: D-12
    ReadAgain,
}

impl RolledBack {
    /// Returns whether the reader has lost its own connection.
    pub(super) fn is_connection_lost(&self) -> bool {
        let Self::Failed(Interrupt::Failed(failure)) = self else {
            return false;
        };
        let exception = failure.exception.as_ref();
        exception.is_some_and(|error| error.is_connection_lost())
    }
}

impl From<Failure> for RolledBack {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<RepositoryError> for RolledBack {
    fn from(error: RepositoryError) -> Self {
        Self::Failed(error.into())
    }
}

impl Interval<'_, '_> {
    /// Names the first `items` items of this interval.
    pub(super) fn first_items(&self, items: usize) -> String {
        let (before, step) = (self.read_before, &self.step.step_name);
        let last = before + items as u64;
        match before + 1 {
            first if first >= last => format!("at item {last} of `{step}`"),
            first => format!("in the chunk of items {first} to {last} of `{step}`"),
        }
    }

    /// Names the first item of this interval.
    pub(super) fn beginning(&self) -> String {
        let (first, step) = (self.read_before + 1, &self.step.step_name);
        format!("in the chunk that begins at item {first} of `{step}`")
    }
}
