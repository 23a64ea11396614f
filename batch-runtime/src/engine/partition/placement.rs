//! Where the partitions of an element run: on threads of this process, or in workers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::PartitionedElement;
use super::monitor::PartitionMonitor;
use crate::artifact::CollectorData;
use crate::dispatch::{DeclinedPartition, DispatchError, PartitionChannel, PartitionEvent, PartitionTicket};
use crate::ids::StepExecutionId;
use crate::repository::PartitionFinding;

/// The number of partitions that are submitted to workers at a time, if nothing else limits it: more than the workers have slots,
/// and few enough for the memory and the transport.
const REMOTE_PARTITIONS: usize = 500;
/// The most partitions that are prepared, submitted and noted together.
pub(super) const TOGETHER: usize = 100;

/// The submitted partitions that have not ended.
pub(super) type Submitted = BTreeMap<StepExecutionId, PartitionTicket>;

/// A place where partitions run.
pub(super) trait Placement {
    /// Returns true if this process runs the partitions.
    fn is_here(&self) -> bool;

    /// Returns the most partitions that are submitted at a time, if nothing else limits it.
    fn at_a_time(&self) -> usize;

    /// Returns how many partitions to prepare now. `ready` partitions are prepared and not submitted, `free` more can be submitted, `limit` is
    /// the most at a time.
    fn prepare_now(&self, ready: usize, free: usize, limit: usize) -> usize;

    /// Submits partitions.
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError>;

    /// Waits for the next event, at most `wait`. With a `wait` of zero, returns what has arrived.
    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, DispatchError>;

    /// Requests the submitted partitions to stop. Returns `false` if not all of them can know it.
    fn stop(&mut self, submitted: &Submitted) -> bool;

    /// Notes why a worker does not run a partition.
    fn declined(&mut self, reason: DeclinedPartition) {
        drop(reason);
    }

    /// Returns the actions for submitted partitions whose end, worker or ticket was lost. `is_stopping`: partitions that no worker has
    /// claimed have to end.
    fn attend(&mut self, submitted: &Submitted, is_stopping: bool) -> Vec<PartitionAction> {
        let _ = (submitted, is_stopping);
        Vec::new()
    }
}

/// What has arrived.
pub(super) enum Received {
    /// A payload of a partition in this process.
    Collected(StepExecutionId, CollectorData),
    Event(PartitionEvent),
}

/// An action for a partition.
pub(super) enum PartitionAction {
    /// Its row has ended.
    NoteEnd(StepExecutionId),
    /// Its worker may be dead.
    Reopen(StepExecutionId),
    /// It was stopped before a worker has claimed it.
    EndUnclaimed(StepExecutionId),
    /// Its ticket may be lost.
    SubmitAgain(StepExecutionId),
}

/// Workers in other processes, through the channel of a dispatcher.
pub(super) struct Workers<'e> {
    element: &'e PartitionedElement<'e>,
    queue: &'e str,
    channel: Box<dyn PartitionChannel + 'e>,
    monitor: PartitionMonitor,
}

impl<'e> Workers<'e> {
    pub(super) fn new(
        element: &'e PartitionedElement<'e>,
        queue: &'e str,
        channel: Box<dyn PartitionChannel + 'e>,
    ) -> Self {
        let lease_time = element.walk.shared.repository.lease_time();
        Self {
            element,
            queue,
            channel,
            monitor: PartitionMonitor::new(lease_time),
        }
    }

    /// Logs a warning, once in a while, if no worker runs any of the partitions.
    fn warn(&mut self) {
        let shared = self.element.walk.shared;
        let fingerprint = shared.dispatch.map_or("", |dispatch| &dispatch.fingerprint);
        let warning = self
            .monitor
            .warning(self.element.id, self.queue, fingerprint, shared.repository);
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
    }
}

impl Placement for Workers<'_> {
    fn is_here(&self) -> bool {
        false
    }

    fn at_a_time(&self) -> usize {
        REMOTE_PARTITIONS
    }

    fn prepare_now(&self, _ready: usize, free: usize, limit: usize) -> usize {
        match free >= TOGETHER.min(limit / 4).max(1) {
            true => free.min(TOGETHER),
            false => 0,
        }
    }

    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        self.channel.submit(tickets)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, DispatchError> {
        Ok(self.channel.receive(wait)?.map(Received::Event))
    }

    fn stop(&mut self, submitted: &Submitted) -> bool {
        self.channel.stop();
        // The poll finds the partitions that no worker has claimed.
        self.monitor.poll_now();
        let ids: Vec<StepExecutionId> = submitted.keys().copied().collect();
        let store = self.element.walk.shared.repository.worker_store();
        let stopped = store.and_then(|store| store.stop_partitions(&ids));
        if let Err(error) = &stopped {
            tracing::warn!(%error, "cannot request the partitions to stop; their job's status does");
        }
        stopped.is_ok()
    }

    fn declined(&mut self, reason: DeclinedPartition) {
        self.monitor.declined(reason);
    }

    fn attend(&mut self, submitted: &Submitted, is_stopping: bool) -> Vec<PartitionAction> {
        let findings = self.monitor.poll(self.element.walk.shared.repository, submitted);
        let mut actions = Vec::new();
        for finding in findings {
            actions.extend(match finding {
                PartitionFinding::Ended(id) => Some(PartitionAction::NoteEnd(id)),
                PartitionFinding::LeaseLost(id) => Some(PartitionAction::Reopen(id)),
                PartitionFinding::Unclaimed(id) if is_stopping => Some(PartitionAction::EndUnclaimed(id)),
                PartitionFinding::Unclaimed(id) => {
                    let is_lost = self.monitor.is_ticket_lost(id);
                    is_lost.then_some(PartitionAction::SubmitAgain(id))
                }
            });
        }
        self.warn();
        actions
    }
}
