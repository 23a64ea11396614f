//! Notices changes in the repository, for pages that are open.
//!
//! One task polls the repository, and only while a page is open, so that a page more costs nothing there. It sees the executions of
//! other processes too.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError};
use tokio::sync::watch;

use crate::async_operator::AsyncOperator;

/// The interval between reads of the repository.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of running executions whose steps are read.
const MAX_RUNNING: u32 = 100;

/// The statuses of executions that have not ended.
pub(crate) const OPEN: [BatchStatus; 3] =
    [BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping];

/// Notifies open pages that something has changed.
#[derive(Clone)]
pub(crate) struct ChangeNotifier(Arc<Changes>);

struct Changes {
    /// The fingerprint of what was seen last.
    seen: watch::Sender<u64>,
    /// True while a task polls the repository.
    is_polled: AtomicBool,
}

impl Changes {
    /// Returns whether the caller has to poll the repository, because no task does.
    fn claim_polling(&self) -> bool {
        !self.is_polled.swap(true, Ordering::SeqCst)
    }

    /// Ends the polling, and returns true, if no page is open. A page that is opened meanwhile starts another task.
    fn stops_if_unwatched(&self) -> bool {
        if self.seen.receiver_count() > 0 {
            return false;
        }
        self.is_polled.store(false, Ordering::SeqCst);
        self.seen.receiver_count() == 0 || !self.claim_polling()
    }
}

impl ChangeNotifier {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Changes {
            seen: watch::Sender::new(0),
            is_polled: AtomicBool::new(false),
        }))
    }

    /// Starts to follow changes, and to look for them if no other page does.
    pub(crate) fn follow(&self, operator: &AsyncOperator) -> watch::Receiver<u64> {
        let receiver = self.0.seen.subscribe();
        if self.0.claim_polling() {
            tokio::spawn(poll(Arc::clone(&self.0), operator.clone()));
        }
        receiver
    }
}

/// Polls the repository until no page is open.
async fn poll(changes: Arc<Changes>, operator: AsyncOperator) {
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if changes.stops_if_unwatched() {
            return;
        }
        // An unreachable repository is a change as well: pages report it, and recover when it is back.
        let seen = operator.run(fingerprint).await.unwrap_or(0);
        changes.seen.send_if_modified(|last| {
            let is_new = *last != seen;
            *last = seen;
            is_new
        });
    }
}

/// Returns a number that changes with everything that pages show of executions.
fn fingerprint(operator: &JobOperator) -> Result<u64, JobOperatorError> {
    let filter = |statuses: &[BatchStatus], limit| ExecutionFilter {
        statuses: statuses.to_vec(),
        limit: Some(limit),
        ..ExecutionFilter::default()
    };
    let running = operator.find_executions(&filter(&OPEN, MAX_RUNNING))?;
    let latest = operator.find_executions(&filter(&[], 1))?;
    let ids: Vec<JobExecutionId> = running.iter().map(|execution| execution.id).collect();
    let mut hasher = DefaultHasher::new();
    for execution in running.iter().chain(&latest) {
        (execution.id, execution.version, execution.status).hash(&mut hasher);
    }
    for state in operator.execution_states(&running)?.values() {
        (state.is_alive, state.waits_for).hash(&mut hasher);
    }
    // The steps of partitions change nothing in the row of their own step.
    for (execution, counters) in operator.counters_of(&ids)? {
        (execution, counters).hash(&mut hasher);
    }
    for step in operator.steps_of(&ids)?.values().flatten() {
        (step.id, step.version, step.status).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: CON-08
    #[test]
    fn one_task_polls_while_a_page_is_open() {
        let ChangeNotifier(changes) = ChangeNotifier::new();
        let (first, second) = (changes.seen.subscribe(), changes.seen.subscribe());
        // Both pages are opened before either asks for a task.
        assert_eq!([changes.claim_polling(), changes.claim_polling()], [true, false]);
        drop(first);
        assert!(!changes.stops_if_unwatched());
        drop(second);
        assert!(changes.stops_if_unwatched());
        let _third = changes.seen.subscribe();
        assert!(changes.claim_polling());
    }
}
