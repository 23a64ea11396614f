//! Threads of this process: one for each running partition, which may run the next ones as well.

use std::time::Duration;

use super::placement::{Placement, Received, Submitted, TOGETHER};
use super::{EndedHere, PartitionedElement, Prepared};
use crate::dispatch::{DispatchError, PartitionEvent, PartitionTicket};
use crate::engine::threads::{Report, SubjobThreads, lock};
use crate::ids::StepExecutionId;
use crate::repository::Ending;
use crate::status::BatchStatus;

/// The least number of partitions that are prepared together: they share the transaction, and few rows have to be ended if the element
/// stops.
const PREPARED_AHEAD: usize = 16;
/// More partitions are prepared when fewer are ready.
const REFILL_BELOW: usize = PREPARED_AHEAD / 2;

pub(super) struct LocalThreads<'t, 'scope> {
    element: &'scope PartitionedElement<'scope>,
    threads: SubjobThreads<'t, 'scope>,
    out: Vec<Out>,
    /// Those whose threads could not be started.
    not_started: Vec<StepExecutionId>,
}

/// A partition that runs.
struct Out {
    number: usize,
    row: StepExecutionId,
}

impl<'t, 'scope> LocalThreads<'t, 'scope> {
    pub(super) fn new(
        element: &'scope PartitionedElement<'scope>,
        threads: SubjobThreads<'t, 'scope>,
    ) -> Self {
        Self {
            element,
            threads,
            out: Vec::new(),
            not_started: Vec::new(),
        }
    }

    /// Starts the thread of a partition. If that fails, so does the partition.
    fn begin(&mut self, row: StepExecutionId) {
        let element = self.element;
        let Some(prepared) = lock(&element.prepared).remove(&row) else {
            return self.could_not_start(row, "the partition was not prepared");
        };
        let number = prepared.number as usize;
        let placed = |prepared: Prepared| (prepared.number as usize, prepared);
        let name = format!("batch-{}", element.id);
        let started = self
            .threads
            .begin_series(name, placed(prepared), move |worker, sink, prepared| {
                let (ended, next) = element.run_here(worker, sink, prepared)?;
                Ok((ended, next.map(placed)))
            });
        match started {
            Ok(()) => self.out.push(Out { number, row }),
            Err(error) => self.could_not_start(row, &format!("cannot start a thread: {error}")),
        }
    }

    /// Returns the partition that the thread of one that has ended runs now.
    fn following(&self, ended: &EndedHere) -> Option<Out> {
        let row = ended.next.as_ref()?.step_execution;
        Some(Out {
            number: self.element.number_of(row) as usize,
            row,
        })
    }

    fn could_not_start(&mut self, row: StepExecutionId, problem: &str) {
        let ending = Ending::of(BatchStatus::Failed, problem.to_owned());
        let ended = self.element.end(row, &ending);
        lock(&self.element.ended_here).insert(row, ended.into());
        self.not_started.push(row);
    }
}

impl Placement for LocalThreads<'_, '_> {
    fn is_here(&self) -> bool {
        true
    }

    fn at_a_time(&self) -> usize {
        self.element.walk.shared.partition_threads
    }

    /// More than can be submitted, so that a free thread finds a row.
    fn prepare_now(&self, ready: usize, _free: usize, limit: usize) -> usize {
        match ready < REFILL_BELOW {
            true => limit.clamp(PREPARED_AHEAD, TOGETHER),
            false => 0,
        }
    }

    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        for ticket in tickets {
            self.begin(ticket.step_execution);
        }
        Ok(())
    }

    /// Waits without a limit, unless `wait` is zero: a thread always reports its end, and stop requests reach it directly.
    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, DispatchError> {
        // They have no thread that would report their end.
        if let Some(row) = self.not_started.pop() {
            return Ok(Some(Received::Event(PartitionEvent::Ended(row))));
        }
        let report = match wait.is_zero() {
            true => self.threads.try_next(),
            false => self.threads.next(),
        };
        Ok(match report {
            None => None,
            Some(Report::Data(number, data)) => {
                let out = self.out.iter().find(|out| out.number == number);
                out.map(|out| Received::Collected(out.row, data))
            }
            Some(Report::Ended(end)) => {
                let position = self.out.iter().position(|out| out.number == end.position);
                position.map(|position| {
                    let row = self.out.swap_remove(position).row;
                    let mut ended = lock(&self.element.ended_here);
                    match end.result {
                        // The thread runs the next partition already, and its payloads follow this report.
                        Ok(_) => self
                            .out
                            .extend(ended.get(&row).and_then(|ended| self.following(ended))),
                        // A thread that returns an error has not noted the end.
                        Err(error) => drop(ended.insert(row, Err(error).into())),
                    }
                    Received::Event(PartitionEvent::Ended(row))
                })
            }
        })
    }

    fn stop(&mut self, _submitted: &Submitted) -> bool {
        self.threads.stop();
        true
    }
}
