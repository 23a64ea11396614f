//! Messages from workers to coordinators.

use batch_runtime::StepExecutionId;
use batch_runtime::partition::DeclinedPartition;
use serde::{Deserialize, Serialize};

/// A report of a worker. A hint: the repository has what the coordinator needs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Ended(Vec<StepExecutionId>),
    Declined(StepExecutionId, DeclinedPartition),
}
