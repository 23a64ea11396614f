//! The rows of partitions, before they are submitted.

use std::collections::BTreeSet;

use super::{PartitionedElement, Prepared};
use crate::engine::call::Failure;
use crate::engine::outcome::Outcome;
use crate::engine::threads::lock;
use crate::execution::{StepCounters, StepExecution};
use crate::repository::{NewStepExecution, RepositoryError, StepHistory, StepState};
use crate::status::BatchStatus;

/// The result of preparing a partition.
pub(super) enum Preparation {
    /// It does not run: an earlier execution completed it, or it cannot be resumed.
    Settled(Outcome, String),
    /// Its row exists.
    Ready(StepExecution),
}

impl PartitionedElement<'_> {
    /// Reads the history of a partition, and inserts its row unless it is complete.
    // Spec: PART-29, PART-32, FPART-11
    fn prepare(&self, number: u32, is_here: bool) -> Result<Preparation, RepositoryError> {
        let shared = self.walk.shared;
        let (repository, lease) = (shared.repository, &shared.running.lease);
        let name = format!("{}:{number}", self.key);
        let new = NewStepExecution {
            name: &name,
            status: BatchStatus::Starting,
            since: self.since,
            is_first: shared.is_first,
        };
        let begins = |history: &StepHistory| {
            let is_new = history.last.as_ref().is_none_or(|last| {
                last.job_execution_id != lease.execution_id && last.status != BatchStatus::Completed
            });
            (is_new && history.cannot_resume().is_none()).then(|| history.state.clone())
        };
        let (history, inserted) = repository.insert_step(lease, &new, &begins)?;
        if let Some((row, state)) = inserted {
            return Ok(self.ready(number, row, is_here.then_some((state, history.counters()))));
        }
        if let Some(lost) = history.cannot_resume() {
            let outcome = Outcome::Failed(Failure::new(lost));
            return Ok(Preparation::Settled(outcome, BatchStatus::Failed.to_string()));
        }
        // Complete, or the row of this job execution: the worker of an enclosing partition has died, and this one resumes it.
        let StepHistory {
            last, state, before, ..
        } = history;
        let last = last.ok_or(RepositoryError::Fault)?;
        match last.status {
            BatchStatus::Starting => Ok(self.ready(number, last, is_here.then_some((state, before)))),
            status if status.is_final() => {
                let (outcome, exit_status) = self.ended(&last, &state)?;
                Ok(Preparation::Settled(outcome, exit_status))
            }
            _ => Err(RepositoryError::Fenced {
                action: "resume the partition",
            }),
        }
    }

    /// Notes a partition whose row exists; with its state and earlier counters if this process runs it.
    fn ready(&self, number: u32, row: StepExecution, here: Option<(StepState, StepCounters)>) -> Preparation {
        lock(&self.numbers).insert(row.id, number);
        if let Some((state, earlier)) = here {
            let prepared = Prepared {
                number,
                row: row.clone(),
                state,
                earlier,
            };
            lock(&self.prepared).insert(row.id, prepared);
        }
        Preparation::Ready(row)
    }

    /// Prepares partitions, those that have never run by few statements. Their rows are STARTING until a thread or worker begins them.
    /// After an error `prepared` has those whose rows exist.
    // Spec: PART-32, D-105
    pub(super) fn prepare_all(
        &self,
        numbers: &[u32],
        is_here: bool,
        prepared: &mut Vec<(u32, Preparation)>,
    ) -> Result<(), RepositoryError> {
        if let [number] = numbers {
            prepared.push((*number, self.prepare(*number, is_here)?));
            return Ok(());
        }
        let shared = self.walk.shared;
        let (repository, lease) = (shared.repository, &shared.running.lease);
        let name = |number: &u32| format!("{}:{number}", self.key);
        let names: Vec<String> = numbers.iter().map(name).collect();
        let known = match shared.is_first {
            true => BTreeSet::new(),
            false => repository.names_with_history(lease.instance_id, &names)?,
        };
        let (old, new): (Vec<u32>, Vec<u32>) =
            numbers.iter().partition(|number| known.contains(&name(number)));
        if !new.is_empty() {
            let names: Vec<String> = new.iter().map(name).collect();
            let rows = repository.create_partitions(lease, &names)?;
            // `zip` would silently leave partitions out.
            if rows.len() != names.len() {
                return Err(RepositoryError::Fault);
            }
            for (number, row) in new.into_iter().zip(rows) {
                prepared.push((number, self.ready(number, row, is_here.then(Default::default))));
            }
        }
        for number in old {
            prepared.push((number, self.prepare(number, is_here)?));
        }
        Ok(())
    }
}
