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
    /// The trace context of the job execution, as the W3C header `traceparent`. If it is missing, a worker that is traced reads it from the
    /// repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Workers and coordinators of versions without traces understand the tickets of this one, and the reverse.
    // Spec: OTEL-04
    #[test]
    fn a_ticket_has_its_trace_only_if_there_is_one() {
        let old = r#"{"job_execution":1,"step_execution":2,"attempt":1,"fingerprint":"f"}"#;
        let ticket: PartitionTicket = serde_json::from_str(old).unwrap();
        assert_eq!(ticket.traceparent, None);
        assert_eq!(serde_json::to_string(&ticket).unwrap(), old);
        let traced = PartitionTicket {
            traceparent: Some("00-1".into()),
            ..ticket
        };
        let text = serde_json::to_string(&traced).unwrap();
        assert_eq!(serde_json::from_str::<PartitionTicket>(&text).unwrap(), traced);
    }
}

/// The reason of a worker that does not run a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeclinedPartition {
    /// The worker.
    pub worker: String,
    /// The fingerprint of the job as the worker resolves it; `None` if it cannot.
    pub fingerprint: Option<String>,
    /// The reason, for people.
    pub reason: String,
}
