//! Queries about many executions at once, with a constant number of statements.

use std::collections::BTreeMap;

use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::repository::{ExecutionFilter, HolderState, RepositorySize, Result};
use crate::status::BatchStatus;

/// The holder of an instance's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The latest execution that the lease was taken for.
    pub(crate) execution: JobExecutionId,
    /// The name of the owner, or of the last one; empty if an early version of the runtime has removed it.
    pub(crate) owner: String,
    /// Its state.
    pub(crate) state: HolderState,
}

/// Queries about many executions, for lists and pages.
pub(crate) trait OverviewStore: Send + Sync {
    /// Returns the latest execution of each job, by the names of the jobs.
    fn latest_executions(&self) -> Result<Vec<JobExecution>>;

    /// Returns the latest execution of each of these instances.
    fn latest_of_instances(
        &self,
        instances: &[JobInstanceId],
    ) -> Result<BTreeMap<JobInstanceId, JobExecutionId>>;

    /// Returns the lease holders of instances. An instance that no runtime has run has none.
    fn holders(&self, instances: &[JobInstanceId]) -> Result<BTreeMap<JobInstanceId, Holder>>;

    /// Returns the executions that wait for the turn of their job, each with the one that it waits for: the one that has the turn, else the
    /// first that waits. Unlike `OperatorStore::waits_for` it does not check whether that one is alive.
    fn waiting(&self) -> Result<BTreeMap<JobExecutionId, JobExecutionId>>;

    /// Returns the step executions of job executions without partitions, in the order of their start, without user data.
    fn steps_of(&self, executions: &[JobExecutionId])
    -> Result<BTreeMap<JobExecutionId, Vec<StepExecution>>>;

    /// Returns the counters of all step executions of job executions, including partitions, with the names of their steps.
    fn counters_of(
        &self,
        executions: &[JobExecutionId],
    ) -> Result<BTreeMap<JobExecutionId, Vec<(String, StepCounters)>>>;

    /// Counts the executions that match a filter, by their status. The limit of the filter does not apply.
    fn count_executions(&self, filter: &ExecutionFilter) -> Result<Vec<(BatchStatus, u64)>>;

    /// Counts the rows.
    fn size(&self) -> Result<RepositorySize>;
}
