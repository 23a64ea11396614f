//! The channel to threads of this process: one for each running partition.

use std::time::Duration;

use super::PartitionedElement;
use crate::dispatch::{CollectedPayload, DispatchError, PartitionChannel, PartitionEvent, PartitionTicket};
use crate::engine::outcome::Outcome;
use crate::engine::threads::{Report, SubjobThreads, lock};
use crate::ids::StepExecutionId;

pub(super) struct LocalThreads<'t, 'scope> {
    element: &'scope PartitionedElement<'scope>,
    threads: SubjobThreads<'t, 'scope>,
    out: Vec<Out>,
}

/// A partition that runs.
struct Out {
    number: usize,
    row: StepExecutionId,
    /// The number of payloads that it has sent.
    payloads: u64,
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
        }
    }

    fn begin(&mut self, row: StepExecutionId) -> Result<(), DispatchError> {
        let element = self.element;
        let prepared = element
            .prepared(row)
            .ok_or_else(|| DispatchError::new("the partition was not prepared"))?;
        let number = prepared.number as usize;
        let name = format!("batch-{}:{number}", element.id);
        let started = self.threads.begin(number, name, move |worker, sink| {
            element.run_here(worker, sink, row, prepared)
        });
        started.map_err(|error| DispatchError::new("cannot start a thread").caused_by(error))?;
        self.out.push(Out {
            number,
            row,
            payloads: 0,
        });
        Ok(())
    }
}

impl PartitionChannel for LocalThreads<'_, '_> {
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        tickets
            .iter()
            .try_for_each(|ticket| self.begin(ticket.step_execution))
    }

    /// Waits without a limit: a thread always reports its end, and stop requests reach it directly.
    fn receive(&mut self, _wait: Duration) -> Result<Option<PartitionEvent>, DispatchError> {
        Ok(match self.threads.next() {
            None => None,
            Some(Report::Data(number, data)) => {
                let out = self.out.iter_mut().find(|out| out.number == number);
                out.map(|out| {
                    out.payloads += 1;
                    PartitionEvent::Collected(CollectedPayload {
                        step_execution: out.row,
                        claim: 1,
                        sequence: out.payloads,
                        data,
                    })
                })
            }
            Some(Report::Ended(end)) => {
                let position = self.out.iter().position(|out| out.number == end.position);
                position.map(|position| {
                    let row = self.out.swap_remove(position).row;
                    let ended = end.result.map(|ended| match ended.outcome {
                        Outcome::Failed(failure) => Some(failure),
                        _ => None,
                    });
                    lock(&self.element.ended_here).insert(row, ended);
                    PartitionEvent::Ended(row)
                })
            }
        })
    }

    fn stop(&mut self) {
        self.threads.stop();
    }
}
