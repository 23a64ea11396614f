//! The ticket of a partition.

use serde::{Deserialize, Serialize};

use crate::ids::{JobExecutionId, StepExecutionId};

/// Names a partition to a worker. Holds ids only, no data and no code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartitionTicket {
    /// The job execution that the partition belongs to.
    pub job_execution: JobExecutionId,
    /// The row of the partition, in status STARTING until a worker claims it.
    pub step_execution: StepExecutionId,
    /// The number of times that the partition was submitted, from 1; it is more than one if a worker died.
    pub attempt: u32,
    /// Identifies the job as the coordinator resolved it. A worker that resolves it differently, because it has another
    /// version of the Job XML or other system properties, must not run the partition.
    pub fingerprint: String,
}
