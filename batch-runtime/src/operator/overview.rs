//! Reads many executions at once, for lists and pages: each method takes a constant number of statements.

use std::collections::{BTreeMap, HashMap};

use super::{JobOperator, Result};
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::{ExecutionFilter, Holder, HolderState, RepositorySize};
use crate::status::BatchStatus;

/// The process of an execution, as far as the repository shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutionState {
    /// True if it has not ended and its process is not known to be dead. Unlike [`JobOperator::is_alive`], it is true for an open execution
    /// of another program, whose process cannot be checked.
    pub is_alive: bool,
    /// The process that runs it, or has died: its host, process id and start. `None` if the execution has ended, or if another program
    /// runs it.
    pub owner: Option<String>,
    /// As `owner`, but also after the end. `None` for an execution of another program, and for one that another execution of its instance
    /// has followed.
    // Spec: CON-14
    pub last_owner: Option<String>,
    /// True if no runtime has ever run the instance: its executions were run by another program, such as Spring Batch, or imported.
    pub is_of_other_program: bool,
    /// The execution it waits for, because executions of its job run one at a time.
    pub waits_for: Option<JobExecutionId>,
}

impl ExecutionState {
    /// Returns whether an execution in this state has not ended although its process is dead.
    pub fn is_dead(&self, status: BatchStatus) -> bool {
        !status.is_final() && !self.is_alive
    }
}

impl JobOperator {
    /// Returns the latest execution of each job, by the names of the jobs.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01
    pub fn latest_executions(&self) -> Result<Vec<JobExecution>> {
        Ok(self.shared.repository.latest_executions()?)
    }

    /// Returns the latest execution of each of these instances. An instance without executions is missing.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01
    pub fn latest_of_instances(
        &self,
        instances: &[JobInstanceId],
    ) -> Result<BTreeMap<JobInstanceId, JobExecutionId>> {
        Ok(self.shared.repository.latest_of_instances(instances)?)
    }

    /// Returns the states of executions.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01
    pub fn execution_states(
        &self,
        executions: &[JobExecution],
    ) -> Result<BTreeMap<JobExecutionId, ExecutionState>> {
        let repository = &self.shared.repository;
        let instances: Vec<JobInstanceId> = executions.iter().map(|found| found.instance_id).collect();
        let holders = repository.holders(&instances)?;
        let is_waiting = |found: &JobExecution| found.status == BatchStatus::Starting;
        let waiting = match executions.iter().any(is_waiting) {
            true => repository.waiting()?,
            false => BTreeMap::new(),
        };
        let states = executions.iter().map(|found| {
            let holder = holders.get(&found.instance_id);
            let is_open = !found.status.is_final();
            let last = holder.filter(|holder| holder.execution == found.id);
            let own = last.filter(|_| is_open);
            let is_alive = is_open && own.is_none_or(|holder| holder.state == HolderState::Alive);
            let name = |holder: &Holder| Some(holder.owner.clone()).filter(|owner| !owner.is_empty());
            let state = ExecutionState {
                is_alive,
                owner: own.and_then(name),
                last_owner: last.and_then(name),
                is_of_other_program: holder.is_none(),
                waits_for: waiting.get(&found.id).copied().filter(|_| is_alive),
            };
            (found.id, state)
        });
        Ok(states.collect())
    }

    /// Returns the worker processes that run partitions, or have run them last, by their host, process id and start. A partition that has
    /// run in the process of its job is missing.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01, CON-14
    pub fn partition_owners(
        &self,
        partitions: &[StepExecutionId],
    ) -> Result<BTreeMap<StepExecutionId, String>> {
        match self.shared.repository.worker_store() {
            Ok(store) => Ok(store.partition_owners(partitions)?),
            Err(_) => Ok(BTreeMap::new()),
        }
    }

    /// Returns the step executions of job executions, without partitions and without user data. The step executions of one job execution
    /// are in the order of their start. A job execution without steps is missing.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01
    pub fn steps_of(
        &self,
        executions: &[JobExecutionId],
    ) -> Result<BTreeMap<JobExecutionId, Vec<StepExecution>>> {
        Ok(self.shared.repository.steps_of(executions)?)
    }

    /// Returns the sums of the counters of all steps of job executions, including partitions. A job execution without steps is missing.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01
    pub fn counters_of(
        &self,
        executions: &[JobExecutionId],
    ) -> Result<BTreeMap<JobExecutionId, StepCounters>> {
        let counters = self.shared.repository.counters_of(executions)?;
        Ok(counters
            .into_iter()
            .map(|(execution, steps)| (execution, sum(&steps)))
            .collect())
    }

    /// Counts the executions that match a filter, whose limit does not apply, by their status. A status without executions is missing.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01
    pub fn count_executions(&self, filter: &ExecutionFilter) -> Result<Vec<(BatchStatus, u64)>> {
        Ok(self.shared.repository.count_executions(filter)?)
    }

    /// Returns how much the repository holds.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: CON-01
    pub fn repository_size(&self) -> Result<RepositorySize> {
        Ok(self.shared.repository.size()?)
    }
}

/// Sums the counters of steps. Spring Batch adds the counters of partitions to their step, this runtime does not.
fn sum(steps: &[(String, StepCounters)]) -> StepCounters {
    let own: HashMap<&str, StepCounters> = steps
        .iter()
        .map(|(name, counters)| (name.as_str(), *counters))
        .collect();
    let is_counted = |name: &str| {
        let step = name.split_once(':').and_then(|(step, _)| own.get(step));
        step.is_none_or(|counters| *counters == StepCounters::default())
    };
    let counted = steps.iter().filter(|(name, _)| is_counted(name));
    counted.fold(StepCounters::default(), |sum, (_, counters)| sum.plus(*counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: CON-01
    #[test]
    fn partitions_are_counted_once() {
        let read = |name: &str, reads| {
            let counters = StepCounters {
                reads,
                ..StepCounters::default()
            };
            (name.to_owned(), counters)
        };
        // Of this runtime, a partitioned step and a partitioned flow.
        let steps = [
            read("load", 0),
            read("load:1", 3),
            read("load:2", 4),
            read("flow:1", 0),
            read("flow:1/sort", 5),
            read("report", 1),
        ];
        assert_eq!(sum(&steps).reads, 13);
        // Of Spring Batch.
        let steps = [
            read("load", 7),
            read("load:partition0", 3),
            read("load:partition1", 4),
        ];
        assert_eq!(sum(&steps).reads, 7);
    }
}
