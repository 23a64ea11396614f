//! `BatchRuntime::shutdown`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::JobOperator;
use crate::engine::Running;
use crate::ids::JobExecutionId;
use crate::thread;

/// The interval between searches for executions that have started meanwhile.
const POLL: Duration = Duration::from_millis(100);

impl JobOperator {
    /// See [`BatchRuntime::shutdown`](crate::BatchRuntime::shutdown).
    pub(crate) fn shutdown(&self, limit: Duration) -> Vec<JobExecutionId> {
        let begin = Instant::now();
        let mut requested = HashSet::new();
        loop {
            let running = self.running_here();
            let Some((_, first)) = running.first() else {
                self.flush_observers();
                return Vec::new();
            };
            for (execution, _) in &running {
                if requested.insert(*execution) {
                    self.request_stop_on_a_thread(*execution);
                }
            }
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return running.into_iter().map(|(execution, _)| execution).collect();
            }
            first.wait(Some(left.min(POLL)));
        }
    }

    /// Returns the executions of this runtime that have not ended, by id.
    fn running_here(&self) -> Vec<(JobExecutionId, Arc<Running>)> {
        let running = self.shared.running();
        let mut running: Vec<_> = running
            .iter()
            .filter(|(_, running)| !running.has_ended())
            .map(|(execution, running)| (*execution, Arc::clone(running)))
            .collect();
        running.sort_by_key(|(execution, _)| *execution);
        running
    }

    /// `#[cancel]` of a batchlet may take long, and the repository may block.
    fn request_stop_on_a_thread(&self, execution: JobExecutionId) {
        let operator = self.clone();
        let started = thread::start("batch-shutdown", move || operator.request_stop(execution));
        if started.is_err() {
            self.request_stop(execution);
        }
    }
}
