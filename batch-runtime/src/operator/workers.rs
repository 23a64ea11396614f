//! The list of workers.

use super::{JobOperator, Result};
use crate::clock::Timestamp;
use crate::ids::{JobExecutionId, StepExecutionId};

/// A worker process, as registered in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// The name of the process as the owner of its leases: its host, process id and start.
    pub name: String,
    /// The queue that it takes partitions from.
    pub queue: String,
    /// The number of partitions that it runs at the same time.
    pub slots: u32,
    /// The version of its runtime.
    pub version: String,
    /// When it was started.
    pub started: Timestamp,
    /// True if it takes no more partitions.
    pub is_draining: bool,
    /// False if its process on this host has ended, or its registration has expired: it has died, or cannot reach the repository.
    pub is_alive: bool,
    /// The partitions that it runs: the job execution and the row of the partition.
    pub partitions: Vec<(JobExecutionId, StepExecutionId)>,
}

impl JobOperator {
    /// Returns the workers that are registered, the dead ones of the last day included, by name.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn workers(&self) -> Result<Vec<WorkerInfo>> {
        let Ok(store) = self.shared.repository.worker_store() else {
            return Ok(Vec::new());
        };
        let rows = store.workers()?;
        let workers = rows.into_iter().map(|row| WorkerInfo {
            name: row.name,
            queue: row.queue,
            slots: row.slots,
            version: row.version,
            started: Timestamp(row.started),
            is_draining: row.is_draining,
            is_alive: row.is_alive,
            partitions: row.partitions,
        });
        Ok(workers.collect())
    }
}
