//! The rows of partitions, before they are submitted.

use super::{PartitionedElement, Prepared};
use crate::engine::call::Failure;
use crate::engine::outcome::Outcome;
use crate::engine::threads::lock;
use crate::execution::{StepCounters, StepExecution};
use crate::repository::RepositoryError;
use crate::status::BatchStatus;

/// The result of preparing a partition.
pub(super) enum Preparation {
    /// It does not run: an earlier execution completed it, or it cannot be resumed.
    Settled(Outcome, String),
    /// Its row exists.
    Ready(StepExecution),
}

impl PartitionedElement<'_> {
    /// Reads the history of a partition, and creates its row unless it is complete.
    /// Spec: PART-29, PART-32, FPART-11
    pub(super) fn prepare(&self, number: u32) -> Result<Preparation, RepositoryError> {
        let shared = self.walk.shared;
        let (repository, lease) = (shared.repository, &shared.running.lease);
        let name = format!("{}:{number}", self.key);
        let history = repository.step_history(lease.instance_id, &name, self.since)?;
        // The row of this job execution, if the worker of an enclosing partition has died and this one resumes it.
        let last = history.last.as_ref();
        let here = last.filter(|last| last.job_execution_id == lease.execution_id);
        let has_ended_here = here.is_some_and(|last| last.status.is_final());
        if let Some(last) = last.filter(|last| has_ended_here || last.status == BatchStatus::Completed) {
            let (outcome, exit_status) = self.ended(last, &history.state, None)?;
            return Ok(Preparation::Settled(outcome, exit_status));
        }
        if let Some(lost) = history.lost_checkpoint() {
            let outcome = Outcome::Failed(Failure::new(lost));
            return Ok(Preparation::Settled(outcome, BatchStatus::Failed.to_string()));
        }
        let (row, earlier) = match here.filter(|last| last.status == BatchStatus::Starting) {
            Some(reopened) => (reopened.clone(), history.before),
            None => {
                let row = repository.create_step(lease, &name, &history.state)?;
                (row, history.counters())
            }
        };
        let prepared = Prepared { number, earlier };
        lock(&self.prepared).insert(row.id, prepared);
        Ok(Preparation::Ready(row))
    }

    /// Prepares partitions, those that have never run by few statements.
    pub(super) fn prepare_all(&self, numbers: &[u32]) -> Result<Vec<(u32, Preparation)>, RepositoryError> {
        if let [number] = numbers {
            return Ok(vec![(*number, self.prepare(*number)?)]);
        }
        let shared = self.walk.shared;
        let (repository, lease) = (shared.repository, &shared.running.lease);
        let name = |number: &u32| format!("{}:{number}", self.key);
        let names: Vec<String> = numbers.iter().map(name).collect();
        let known = repository.names_with_history(lease.instance_id, &names)?;
        let new: Vec<String> = names.into_iter().filter(|name| !known.contains(name)).collect();
        let mut rows = repository.create_partitions(lease, &new)?.into_iter();
        let mut prepared = Vec::new();
        for number in numbers {
            let preparation = if known.contains(&name(number)) {
                self.prepare(*number)?
            } else {
                let row = rows.next().ok_or(RepositoryError::Fault)?;
                let is_new = Prepared {
                    number: *number,
                    earlier: StepCounters::default(),
                };
                lock(&self.prepared).insert(row.id, is_new);
                Preparation::Ready(row)
            };
            prepared.push((*number, preparation));
        }
        Ok(prepared)
    }
}
