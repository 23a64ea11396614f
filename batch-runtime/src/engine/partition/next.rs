//! The next partition of a thread: it starts in the transaction that ends the one before, which saves a commit and a thread.
//!
//! Spec: PART-33, D-105

use std::cell::RefCell;

use super::{PartitionedElement, Prepared};
use crate::dispatch::PartitionTicket;
use crate::engine::threads::{Worker, lock};
use crate::execution::StepExecution;
use crate::repository::{DataChanges, Ending, RepositoryError, StepState};
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

    /// Records the end, and the start of the next partition, if the thread continues with one.
    ///
    /// # Errors
    /// If the repository rejects it. The other partition then waits again.
    pub(super) fn record(
        &self,
        row: &mut StepExecution,
        ending: &Ending,
        state: Option<&StepState>,
        data: &DataChanges,
    ) -> Result<(), RepositoryError> {
        let shared = self.element.walk.shared;
        let ends_job = state.is_some_and(|state| state.termination.is_some());
        let mut next = match ending.status {
            BatchStatus::Completed if !ends_job => self.take_next(),
            _ => None,
        };
        let started = next.as_mut().map(|next| &mut next.prepared.row);
        let recorded = shared
            .repository
            .end_step(&shared.running.lease, row, ending, state, data, started);
        match (&recorded, next) {
            (Err(_), Some(next)) => self.element.put_back(next),
            (_, next) => drop(self.next.replace(next)),
        }
        recorded
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

impl PartitionedElement<'_> {
    /// Lets a partition wait for a thread again.
    fn put_back(&self, NextPartition { ticket, prepared }: NextPartition) {
        lock(&self.prepared).insert(ticket.step_execution, prepared);
        lock(&self.ready).push_front(ticket);
    }
}
