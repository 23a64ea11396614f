//! The wait of a job execution for its turn.
// Spec: TURN-02

use std::time::Duration;

use super::elements::BoundJob;
use super::threads::{Running, Worker};
use crate::ids::JobExecutionId;
use crate::observer::JobEventKind;
use crate::repository::{Concurrency, JobRepository, RepositoryError};

/// The interval between checks of a waiting execution for its turn.
const LOOK: Duration = Duration::from_millis(500);

/// Waits until the execution has the turn of its job. Returns `false` after a request to stop.
pub(super) fn wait(
    repository: &dyn JobRepository,
    job: &BoundJob,
    running: &Running,
) -> Result<bool, RepositoryError> {
    if job.concurrency != Concurrency::Queue {
        return Ok(true);
    }
    let workers = &running.workers;
    // As a thread of the execution, so that a stop request ends the wait.
    let worker = workers.begin();
    let has_turn = wait_in_queue(repository, &job.id, running, &worker);
    workers.end(&worker);
    has_turn
}

/// Deletes the tickets of executions whose owner was dead.
pub(crate) fn forget_partitions(repository: &dyn JobRepository, dead: &[JobExecutionId]) {
    let Ok(store) = repository.worker_store() else {
        return;
    };
    for dead in dead {
        if let Err(error) = store.forget_partitions(*dead) {
            tracing::warn!(%error, "its tickets for workers are left in the repository; no worker can claim them");
        }
    }
}

fn wait_in_queue(
    repository: &dyn JobRepository,
    job: &str,
    running: &Running,
    worker: &Worker,
) -> Result<bool, RepositoryError> {
    let mut announced = None;
    while !worker.stop_requested() {
        let outcome = repository.take_turn(&running.lease, job)?;
        running.events.closed(repository, &outcome.closed);
        for dead in outcome.closed {
            tracing::warn!(execution = %dead, "closed an execution whose owner is dead, which had the turn of the job");
            running.events.emit(JobEventKind::TookOver { dead });
            forget_partitions(repository, &[dead]);
        }
        let Some(before) = outcome.waits_for else {
            if announced.is_some() {
                running.events.emit(JobEventKind::TurnTaken);
            }
            return Ok(true);
        };
        if announced.replace(before) != Some(before) {
            running.events.emit(JobEventKind::WaitsForTurn { before });
        }
        worker.pause(LOOK);
    }
    Ok(false)
}
