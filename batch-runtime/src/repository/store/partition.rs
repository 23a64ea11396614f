//! The operations on partitions that worker processes run.

use std::collections::BTreeMap;

use crate::execution::StepExecution;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::{ClaimedPartition, InnerSteps, Lease, PartitionState, Result};

/// Partitions that worker processes claim, run and hand back.
pub(crate) trait PartitionStore: Send + Sync {
    /// Claims a partition that no worker has claimed, so that none can. Returns `false` to all but the first caller.
    fn withhold_partition(&self, id: StepExecutionId) -> Result<bool>;

    /// Claims a partition for a worker process: STARTING becomes STARTED, and the process holds a lease of the partition.
    /// Returns `None` if the partition is claimed or has ended, or its job execution is closed. A crash afterwards leaves a lease that
    /// expires. `is_first` is true if the job execution is the first one of its instance.
    fn claim_partition(
        &self,
        execution: JobExecutionId,
        id: StepExecutionId,
        is_first: bool,
    ) -> Result<Option<ClaimedPartition>>;

    /// Reopens a partition whose worker process is dead, so that another one can claim it and resume from its last
    /// checkpoint. VERSION grows: what the dead worker may still write is rejected.
    ///
    /// # Errors
    /// `Fenced` if `lease`, the job's lease, is lost.
    fn reopen_partition(
        &self,
        lease: &Lease,
        id: StepExecutionId,
        inner: InnerSteps,
    ) -> Result<PartitionState>;

    /// Ends the open steps within a partition of a flow that no worker runs any more.
    ///
    /// # Errors
    /// `Fenced` if `lease`, the job's lease, is lost.
    fn close_inner_steps(&self, lease: &Lease, partition: &StepExecution) -> Result<()>;

    /// Makes a partition that this worker has stopped STARTING again, so that another one can claim it. Not counted as a failed claim.
    fn hand_back_partition(&self, step: &mut StepExecution) -> Result<()>;

    /// Requests the partitions that workers have claimed to stop: STARTED becomes STOPPING.
    fn stop_partitions(&self, partitions: &[StepExecutionId]) -> Result<()>;

    /// Returns the names of the worker processes that run partitions, or have run them last. A partition that has run in the process of its
    /// job is missing.
    fn partition_owners(&self, partitions: &[StepExecutionId]) -> Result<BTreeMap<StepExecutionId, String>>;
}
