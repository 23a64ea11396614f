//! The payloads of collectors in worker processes: stored in the repository, and read by the coordinator.
//!
//! A transport may lose what it carries, so none carries payloads. The transaction that commits a checkpoint, or the end of a step, stores
//! the payload that belongs to it.
// Spec: SUBJOB-09, SUBJOB-11, D-108

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::artifact::CollectorData;
use crate::engine::call::Failure;
use crate::engine::threads::CollectorSink;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::{ClaimedPartition, JobRepository, PartitionReport, PayloadKey, RepositoryError};

/// The interval at which an analyzer gets the payloads of partitions that run.
const INTERVAL: Duration = Duration::from_millis(500);

/// The side of a worker.
pub(super) struct RepositorySink {
    job_execution: JobExecutionId,
    partition: StepExecutionId,
    claim: i64,
    sent: AtomicU64,
}

impl RepositorySink {
    pub(super) fn new(claimed: &ClaimedPartition) -> Self {
        Self {
            job_execution: claimed.lease.execution_id,
            partition: claimed.row.id,
            claim: claimed.row.version,
            sent: AtomicU64::new(0),
        }
    }
}

impl CollectorSink for RepositorySink {
    fn report(&self, data: &CollectorData) -> Result<Option<PartitionReport>, Failure> {
        let report = serde_json::to_string(data)
            .map_err(|error| Failure::new(format!("cannot write the payload of the collector: {error}")))?;
        Ok(Some(PartitionReport {
            step_execution: self.partition,
            job_execution: self.job_execution,
            claim: self.claim,
            number: self.sent.fetch_add(1, Ordering::Relaxed) + 1,
            report,
        }))
    }

    fn send(&self, _data: CollectorData) {}
}

/// Drops payloads, because there is no analyzer.
// Spec: SUBJOB-14
pub(super) struct NoSink;

impl CollectorSink for NoSink {
    fn report(&self, _data: &CollectorData) -> Result<Option<PartitionReport>, Failure> {
        Ok(None)
    }

    fn send(&self, _data: CollectorData) {}
}

/// The side of the coordinator: what it has read.
pub(super) struct Payloads {
    last: BTreeMap<StepExecutionId, PayloadKey>,
    next: Instant,
}

impl Payloads {
    pub(super) fn new() -> Self {
        Self {
            last: BTreeMap::new(),
            next: Instant::now() + INTERVAL,
        }
    }

    /// Returns whether to look for the payloads of partitions that run.
    pub(super) fn are_due(&mut self) -> bool {
        let now = Instant::now();
        let are_due = now >= self.next;
        if are_due {
            self.next = now + INTERVAL;
        }
        are_due
    }

    /// Returns the payloads of partitions that were not returned before, each partition's in their order.
    pub(super) fn take(
        &mut self,
        repository: &dyn JobRepository,
        partitions: &[StepExecutionId],
    ) -> Result<Vec<CollectorData>, RepositoryError> {
        let last = |id: &StepExecutionId| self.last.get(id).copied().unwrap_or_default();
        let after = partitions.iter().map(|id| (*id, last(id))).collect();
        let mut taken = Vec::new();
        for payload in repository.worker_store()?.take_payloads(&after)? {
            let data = serde_json::from_str(&payload.report).map_err(|error| RepositoryError::Corrupt {
                row: format!("a payload of step execution {}", payload.step_execution),
                problem: error.into(),
            })?;
            self.last.insert(payload.step_execution, payload.key());
            taken.push(data);
        }
        Ok(taken)
    }
}
