//! The run of a partition in a slot of a worker, and the reports about it.

use std::sync::Arc;
use std::time::Duration;

use crate::dispatch::{DeclinedPartition, DispatchError, PartitionDelivery};
use crate::error::error_chain;
use crate::operator::{ClaimPartitionError, JobOperatorError, PartitionStop};
use crate::repository::RepositoryError;
use crate::runtime::BatchRuntime;
use crate::status::BatchStatus;

/// The wait before a partition that this worker has declined is offered to it again.
const DECLINED_FOR: Duration = Duration::from_secs(10);

/// A taken ticket, of a slot and its thread.
pub(super) type SharedDelivery = Arc<dyn PartitionDelivery>;

/// Claims and runs a partition. `is_claimed` gets the handle that stops it.
pub(super) fn run(
    runtime: &BatchRuntime,
    delivery: &SharedDelivery,
    worker: &str,
    is_claimed: impl FnOnce(PartitionStop),
) {
    let ticket = delivery.ticket();
    let claimed = match runtime.claim_partition(ticket) {
        Ok(claimed) => claimed,
        Err(ClaimPartitionError::Taken(_)) => return done(delivery.discard(), "discard a ticket"),
        Err(ClaimPartitionError::Job { execution, source }) if is_unknown(&source) => {
            tracing::warn!(
                "discarded a ticket of the unknown job execution {execution}: it was purged, or another repository uses the same prefix; \
                 set `prefix` in the address"
            );
            return done(delivery.discard(), "discard a ticket");
        }
        Err(error) => {
            let here = match &error {
                ClaimPartitionError::OtherVersion { here, .. } => Some(here.clone()),
                _ => None,
            };
            return decline(&**delivery, worker, here, error_chain(&error));
        }
    };
    is_claimed(claimed.stop_handle());
    match claimed.run() {
        // It was handed back.
        Ok(BatchStatus::Starting) => done(delivery.hand_back(Duration::ZERO), "hand a partition back"),
        Ok(_) => done(delivery.ended(), "report the end of a partition"),
        // Another worker or coordinator has taken it over.
        Err(error @ RepositoryError::Fenced { .. }) => {
            tracing::warn!(partition = %ticket.step_execution, %error, "a partition was taken over");
            done(delivery.discard(), "discard a ticket");
        }
        Err(error) => {
            tracing::error!(
                partition = %ticket.step_execution,
                %error,
                "the end of a partition is not recorded; its coordinator submits it again"
            );
            done(delivery.discard(), "discard a ticket");
        }
    }
}

/// No worker can ever run its partitions.
fn is_unknown(problem: &JobOperatorError) -> bool {
    matches!(problem, JobOperatorError::NoSuchJobExecution(_))
}

pub(super) fn decline(
    delivery: &dyn PartitionDelivery,
    worker: &str,
    fingerprint: Option<String>,
    reason: String,
) {
    tracing::warn!(partition = %delivery.ticket().step_execution, reason, "cannot run a partition; leaving it to other workers");
    let reason = DeclinedPartition {
        worker: worker.to_owned(),
        fingerprint,
        reason,
    };
    done(delivery.decline(&reason, DECLINED_FOR), "decline a partition");
}

/// Logs an error of the transport: the coordinator finds out by itself.
pub(super) fn done(result: Result<(), DispatchError>, action: &str) {
    if let Err(error) = result {
        tracing::warn!(error = error_chain(&error), "cannot {action}");
    }
}
