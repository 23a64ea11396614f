//! The operations for workers. Other processes cannot see this repository, so there are none: before a job starts, the operator rejects
//! what would need them.

use std::time::Duration;

use super::MemoryRepository;
use crate::ids::{JobExecutionId, LaunchId, StepExecutionId};
use crate::repository::{
    Channel, ClaimError, ClaimRequest, LaunchPhase, LaunchRow, LaunchStore, Listener, PartitionFinding,
    PartitionReport, QueueStore, QueuedPartition, RepositoryError, TakenLaunch, WithdrawOutcome, WorkerRow,
};

/// Returns the rejection of an operation for workers.
pub(super) fn no_workers() -> RepositoryError {
    RepositoryError::InMemory {
        missing: "workers, because no other process can see it",
    }
}

impl QueueStore for MemoryRepository {
    fn submit_partitions(&self, _: &str, _: &[QueuedPartition]) -> Result<(), RepositoryError> {
        Err(no_workers())
    }

    fn take_partitions(
        &self,
        _: &str,
        _: u32,
        _: &[String],
    ) -> Result<Vec<QueuedPartition>, RepositoryError> {
        Err(no_workers())
    }

    fn defer_partition(&self, _: &str, _: &QueuedPartition, _: Duration) -> Result<(), RepositoryError> {
        Err(no_workers())
    }

    fn withdraw_partitions(&self, _: &[StepExecutionId]) -> Result<(), RepositoryError> {
        Ok(())
    }

    fn forget_partitions(&self, _: JobExecutionId) -> Result<(), RepositoryError> {
        Ok(())
    }

    fn report_partition(&self, _: &PartitionReport, _: bool) -> Result<(), RepositoryError> {
        Err(no_workers())
    }

    fn take_reports(&self, _: &[StepExecutionId]) -> Result<Vec<PartitionReport>, RepositoryError> {
        Ok(Vec::new())
    }

    fn unattended_partitions(&self, _: &[StepExecutionId]) -> Result<Vec<PartitionFinding>, RepositoryError> {
        Ok(Vec::new())
    }

    fn listen(&self, _: Channel, _: &str) -> Result<Option<Box<dyn Listener>>, RepositoryError> {
        Ok(None)
    }

    fn clock_ahead(&self) -> Result<i64, RepositoryError> {
        Ok(0)
    }

    fn is_on_server(&self) -> bool {
        false
    }

    fn register_worker(&self, _: &WorkerRow) -> Result<(), RepositoryError> {
        Err(no_workers())
    }

    fn deregister_worker(&self) -> Result<(), RepositoryError> {
        Ok(())
    }

    fn workers(&self) -> Result<Vec<WorkerRow>, RepositoryError> {
        Ok(Vec::new())
    }

    fn owners(&self) -> Result<Vec<String>, RepositoryError> {
        Ok(Vec::new())
    }
}

impl LaunchStore for MemoryRepository {
    fn submit_launch(&self, _: &ClaimRequest<'_>, _: &str, _: &str) -> Result<LaunchId, ClaimError> {
        Err(no_workers().into())
    }

    fn take_launches(&self, _: &str, _: u32, _: &[String]) -> Result<Vec<TakenLaunch>, RepositoryError> {
        Err(no_workers())
    }

    fn requeue_launch(&self, _: LaunchId, _: Duration, _: &str, _: bool) -> Result<bool, RepositoryError> {
        Ok(false)
    }

    fn end_launch(
        &self,
        _: LaunchId,
        _: LaunchPhase,
        _: Option<JobExecutionId>,
        _: &str,
    ) -> Result<(), RepositoryError> {
        Ok(())
    }

    fn withdraw_launch(&self, _: LaunchId) -> Result<WithdrawOutcome, RepositoryError> {
        Ok(WithdrawOutcome::Unknown)
    }

    fn launches(&self) -> Result<Vec<LaunchRow>, RepositoryError> {
        Ok(Vec::new())
    }
}
