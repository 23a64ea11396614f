//! The thread of a runtime that renews the leases of its executions, and passes on the stop requests of other processes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam::channel::{Receiver, RecvTimeoutError};

use crate::engine::Running;
use crate::operator::Shared;
use crate::outage::Outage;
use crate::repository::{JobRepository, RepositoryError};
use crate::thread;

/// The interval between polls for stop requests of other processes.
const STOP_POLL: Duration = Duration::from_millis(500);

/// Keeps the executions of a runtime until it has ended.
pub(crate) fn keep(runtime: &Weak<Shared>, ended: &Receiver<()>) {
    let mut keeper = Keeper::default();
    while ended.recv_timeout(STOP_POLL) == Err(RecvTimeoutError::Timeout) {
        let Some(shared) = runtime.upgrade() else { return };
        shared.release_again();
        let mut running: Vec<Arc<Running>> = shared.running().values().cloned().collect();
        running.extend(shared.partitions().iter().cloned());
        running.retain(|execution| !execution.has_ended());
        let repository = Arc::clone(&shared.repository);
        // The one who drops the last clone of the runtime waits for its observers, not this thread.
        drop(shared);
        // A panic, such as one of the logger, must not end the renewal of leases and the stop requests.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if !running.is_empty() {
                keeper.look_after(&running, &*repository);
            }
        }));
    }
}

#[derive(Default)]
struct Keeper {
    renewals: Outage,
    signals: Outage,
}

impl Keeper {
    fn look_after(&mut self, running: &[Arc<Running>], repository: &dyn JobRepository) {
        for execution in running.iter().filter(|execution| execution.has_overdue()) {
            on_own_thread(execution, Running::enforce_limits);
        }
        for execution in running.iter().filter(|execution| execution.renewal_due()) {
            self.renew(execution, repository);
        }
        self.pass_stop_requests(running, repository);
    }

    fn renew(&mut self, execution: &Arc<Running>, repository: &dyn JobRepository) {
        const ACTION: &str = "renew leases";
        let Err(error) = execution.renew(repository) else {
            return self.renewals.ended(ACTION);
        };
        // The lease was taken over, or the database has been unreachable for so long that it may have been.
        if !matches!(error, RepositoryError::Fenced { .. }) && !execution.is_untrusted() {
            return self.renewals.failed(ACTION, &error);
        }
        if !execution.workers.stop_requested() {
            tracing::error!(execution = %execution.lease.execution_id, %error, "lost the lease; stopping");
        }
        execution.distrust(&error);
        request_stop(execution);
    }

    fn pass_stop_requests(&mut self, running: &[Arc<Running>], repository: &dyn JobRepository) {
        let leases = running.iter().map(|execution| &execution.lease);
        let executions: Vec<_> = leases.clone().map(|lease| lease.execution_id).collect();
        let partitions: Vec<_> = leases.filter_map(|lease| lease.partition).collect();
        let signals = repository.signals(&executions, &partitions);
        let Some(signals) = self.signals.observe("read stop requests", signals) else {
            return;
        };
        let is_stopped = |execution: &&Arc<Running>| {
            let lease = &execution.lease;
            let partition = lease.partition;
            signals.executions.contains(&lease.execution_id)
                || partition.is_some_and(|partition| signals.partitions.contains(&partition))
        };
        running.iter().filter(is_stopped).for_each(request_stop);
    }
}

fn request_stop(execution: &Arc<Running>) {
    if !execution.workers.stop_requested() {
        on_own_thread(execution, Running::request_stop);
    }
}

/// Does not run on the keeper's thread: a batchlet's `#[cancel]` may take long, and the keeper has to renew leases.
fn on_own_thread(execution: &Arc<Running>, work: fn(&Running)) {
    let execution = Arc::clone(execution);
    let spawned = thread::start("batch-stop", move || work(&execution));
    if let Err(error) = spawned {
        tracing::error!(%error, "cannot start a thread for a stop request; trying again");
    }
}
