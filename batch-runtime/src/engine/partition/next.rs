//! The next partition of a thread: it starts in the transaction that ends the one before, which saves a commit and a thread.
// Spec: PART-33, D-105, D-107

use std::cell::RefCell;

use super::{PartitionedElement, Prepared};
use crate::dispatch::PartitionTicket;
use crate::engine::body::PartitionRecorder;
use crate::engine::threads::{Worker, lock};
use crate::execution::StepExecution;
use crate::repository::{EndOfStep, Ending, RepositoryError, SideWrites, StepState};
use crate::status::BatchStatus;

/// Records the end of a partition.
pub(super) struct PartitionEnd<'e> {
    element: &'e PartitionedElement<'e>,
    /// The thread, if it may continue with another partition.
    worker: Option<&'e Worker>,
    next: RefCell<Option<NextPartition>>,
}

/// A partition that has started.
pub(super) struct NextPartition {
    pub(super) ticket: PartitionTicket,
    pub(super) prepared: Prepared,
}

impl<'e> PartitionEnd<'e> {
    pub(super) fn new(element: &'e PartitionedElement<'e>, worker: Option<&'e Worker>) -> Self {
        Self {
            element,
            worker,
            next: RefCell::default(),
        }
    }

    /// Records the end of a partition in a separate transaction, with its stored state and `side_writes`.
    ///
    /// # Errors
    /// See `PartitionRecorder`.
    pub(super) fn record_row(
        &self,
        row: &mut StepExecution,
        ending: &Ending,
        state: Option<&StepState>,
        side_writes: &SideWrites,
    ) -> Result<(), RepositoryError> {
        let shared = self.element.walk.shared;
        let write = &mut |next: Option<&mut StepExecution>| {
            let lease = &shared.running.lease;
            let end = EndOfStep { ending, next };
            shared.repository.end_step(lease, row, end, state, side_writes)
        };
        match state.is_some_and(|state| state.termination.is_some()) {
            // The job ends.
            true => write(None),
            false => self.record(ending.status, write),
        }
    }

    /// Takes the first partition that waits for a thread. With an analyzer, whose error prevents others from starting, none is taken.
    fn take_next(&self) -> Option<NextPartition> {
        let element = self.element;
        let is_stopped = self.worker?.stop_requested() || element.walk.worker.stop_requested();
        if is_stopped || element.bound.subjobs.analyzer.is_some() {
            return None;
        }
        let ticket = lock(&element.ready).pop_front()?;
        let prepared = lock(&element.prepared).remove(&ticket.step_execution);
        prepared.map(|prepared| NextPartition { ticket, prepared })
    }

    /// Returns the partition that has started.
    pub(super) fn into_next(self) -> Option<NextPartition> {
        self.next.into_inner()
    }
}

impl PartitionRecorder for PartitionEnd<'_> {
    fn record(
        &self,
        status: BatchStatus,
        record: &mut dyn FnMut(Option<&mut StepExecution>) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let mut next = match status {
            BatchStatus::Completed => self.take_next(),
            // After another end the supervisor decides whether one may start.
            _ => None,
        };
        let recorded = record(next.as_mut().map(|next| &mut next.prepared.row));
        match (&recorded, next) {
            (Err(_), Some(next)) => self.element.put_back(next),
            (_, next) => drop(self.next.replace(next)),
        }
        recorded
    }
}

impl PartitionedElement<'_> {
    /// Lets a partition wait for a thread again.
    fn put_back(&self, NextPartition { ticket, prepared }: NextPartition) {
        lock(&self.prepared).insert(ticket.step_execution, prepared);
        // To the front, because partitions start in the order of their numbers.
        lock(&self.ready).push_front(ticket);
    }
}
