//! Who runs the partitions of a step or flow.
//!
//! The contract fits workers in other processes: a ticket holds ids only; whoever gets it claims the partition in the
//! repository, by compare-and-set, so that a ticket that comes twice runs once; and how a partition ended is read from the
//! repository, of which an event is only a hint. Threads of this process are the only workers there are today.
//!
//! Spec: PART-32, PART-34, SUBJOB-11

use std::io;
use std::sync::Arc;

use crossbeam::channel::Sender;

use super::call::Failure;
use super::subjobs::{Crew, Report};
use super::walk::{ElementEnd, Outcome};
use super::worker::Worker;
use crate::artifact::CollectorData;
use crate::ids::StepExecutionId;
use crate::repository::RepositoryError;

/// Names a partition to whoever runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionTicket {
    /// The row of the partition: STARTING until it is claimed.
    pub(super) step_execution: StepExecutionId,
    /// The id of the partitioned step or flow.
    pub(super) element: String,
    /// The number of the partition.
    pub(super) partition: u32,
    /// How many items of its input earlier executions have read; only progress needs it.
    pub(super) earlier_items: u64,
}

/// What a worker tells.
pub(super) enum PartitionEvent {
    /// Those of one partition come in their order, before its end. Spec: SUBJOB-11
    Collected(CollectorData),
    Ended(PartitionTicket, Result<Thrown, RepositoryError>),
}

/// What the repository does not hold of a failure: the error itself, when it happened in this process.
pub(super) type Thrown = Option<Failure>;

/// Hands out partitions.
pub(super) trait PartitionDispatcher {
    /// Has a partition run. The row exists.
    ///
    /// # Errors
    /// When nobody can run it.
    fn submit(&mut self, ticket: PartitionTicket) -> io::Result<()>;

    /// Waits for what happens next; `None` when none is out.
    fn next(&mut self) -> Option<PartitionEvent>;

    /// How many are out.
    fn outstanding(&self) -> usize;

    /// Asks those that are out to stop. Spec: PART-25, PART-28
    fn stop(&self);
}

/// What runs a ticket in this process.
pub(super) type Work<'scope> = dyn Fn(&Arc<Worker>, &Sender<Report>, &PartitionTicket) -> Result<ElementEnd, RepositoryError>
    + Sync
    + 'scope;

/// A thread for each partition that is out.
pub(super) struct LocalThreads<'c, 'scope> {
    crew: Crew<'c, 'scope>,
    work: &'scope Work<'scope>,
    out: Vec<PartitionTicket>,
}

impl<'c, 'scope> LocalThreads<'c, 'scope> {
    pub(super) fn new(crew: Crew<'c, 'scope>, work: &'scope Work<'scope>) -> Self {
        Self {
            crew,
            work,
            out: Vec::new(),
        }
    }
}

impl PartitionDispatcher for LocalThreads<'_, '_> {
    fn submit(&mut self, ticket: PartitionTicket) -> io::Result<()> {
        let (work, of_thread) = (self.work, ticket.clone());
        let name = format!("batch-{}:{}", ticket.element, ticket.partition);
        self.crew
            .begin(ticket.partition as usize, name, move |worker, sender| {
                work(worker, sender, &of_thread)
            })?;
        self.out.push(ticket);
        Ok(())
    }

    fn next(&mut self) -> Option<PartitionEvent> {
        Some(match self.crew.next()? {
            Report::Data(data) => PartitionEvent::Collected(data),
            Report::Ended(end) => {
                let place = self
                    .out
                    .iter()
                    .position(|ticket| ticket.partition as usize == end.position)?;
                let thrown = end.result.map(|ended| match ended.outcome {
                    Outcome::Failed(failure) => Some(failure),
                    _ => None,
                });
                PartitionEvent::Ended(self.out.swap_remove(place), thrown)
            }
        })
    }

    fn outstanding(&self) -> usize {
        self.crew.active()
    }

    fn stop(&self) {
        self.crew.stop();
    }
}
