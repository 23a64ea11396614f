//! Notices changes in the repository, for pages that are open.
//!
//! One task looks at the repository, and only while a page is open, so that a page more costs nothing there. It sees the executions of
//! other processes too.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError};
use tokio::sync::watch;

use crate::work::Workbench;

/// The interval at which the repository is read.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of running executions whose steps are looked at.
const MOST_RUNNING: u32 = 100;

/// The statuses of executions that have not ended.
pub(crate) const OPEN: [BatchStatus; 3] =
    [BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping];

/// Notifies open pages that something has changed.
#[derive(Clone)]
pub(crate) struct Pulse(Arc<Changes>);

struct Changes {
    /// The fingerprint of what was seen last.
    seen: watch::Sender<u64>,
    /// True while a task looks at the repository.
    is_watched: AtomicBool,
}

impl Changes {
    /// Returns whether the caller has to look at the repository, because no task does.
    fn take_over(&self) -> bool {
        !self.is_watched.swap(true, Ordering::SeqCst)
    }

    /// Returns whether no page is open, so that the task ends. A page that is opened meanwhile starts another task.
    fn has_ended(&self) -> bool {
        if self.seen.receiver_count() > 0 {
            return false;
        }
        self.is_watched.store(false, Ordering::SeqCst);
        self.seen.receiver_count() == 0 || !self.take_over()
    }
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Changes {
            seen: watch::Sender::new(0),
            is_watched: AtomicBool::new(false),
        }))
    }

    /// Starts to follow changes, and to look for them if no other page does.
    pub(crate) fn follow(&self, workbench: &Workbench) -> watch::Receiver<u64> {
        let receiver = self.0.seen.subscribe();
        if self.0.take_over() {
            tokio::spawn(look(Arc::clone(&self.0), workbench.clone()));
        }
        receiver
    }
}

/// Looks at the repository until no page is open.
async fn look(changes: Arc<Changes>, workbench: Workbench) {
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if changes.has_ended() {
            return;
        }
        // An unreachable repository looks different as well: pages say so, and recover when it is back.
        let seen = workbench.run(fingerprint).await.unwrap_or(0);
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
    let running = operator.find_executions(&filter(&OPEN, MOST_RUNNING))?;
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

    /// Spec: CON-08
    #[test]
    fn one_task_looks_while_a_page_is_open() {
        let Pulse(changes) = Pulse::new();
        let (first, second) = (changes.seen.subscribe(), changes.seen.subscribe());
        // Both pages are opened before either asks for a task.
        assert_eq!([changes.take_over(), changes.take_over()], [true, false]);
        drop(first);
        assert!(!changes.has_ended());
        drop(second);
        assert!(changes.has_ended());
        let _third = changes.seen.subscribe();
        assert!(changes.take_over());
    }
}
