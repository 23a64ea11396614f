//! Notices changes in the repository, for pages that are open.
//!
//! One task looks at the repository, and only while a page is open, so that a page more costs nothing there. It sees the executions of
//! other processes too.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
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

/// Tells pages that something has changed.
#[derive(Clone)]
pub(crate) struct Pulse(Arc<watch::Sender<u64>>);

impl Pulse {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Starts to follow changes, and to look for them if this is the first page.
    pub(crate) fn follow(&self, workbench: &Workbench) -> watch::Receiver<u64> {
        let receiver = self.0.subscribe();
        if self.0.receiver_count() == 1 {
            tokio::spawn(look(Arc::clone(&self.0), workbench.clone()));
        }
        receiver
    }
}

/// Looks at the repository until no page is open.
async fn look(changes: Arc<watch::Sender<u64>>, workbench: Workbench) {
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if changes.receiver_count() == 0 {
            return;
        }
        // An unreachable repository looks different as well: pages say so, and recover when it is back.
        let seen = workbench.run(fingerprint).await.unwrap_or(0);
        changes.send_if_modified(|last| {
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
    for step in operator.steps_of(&ids)?.values().flatten() {
        (step.id, step.version, step.status).hash(&mut hasher);
    }
    Ok(hasher.finish())
}
