//! `stop` and `wait`.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam::channel::{RecvTimeoutError, bounded};

use super::{JobOperator, JobOperatorError, Result};
use crate::engine::Running;
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::observer::progress::Progress;
use crate::repository::{HolderState, RepositoryError, StopOutcome};
use crate::status::BatchStatus;
use crate::thread;

/// The interval between polls of the repository for an execution of another process.
const POLL: Duration = Duration::from_millis(100);

/// The time that a stop waits for the repository before it notifies the threads anyway.
const PATIENCE: Duration = Duration::from_secs(1);

impl JobOperator {
    /// Requests a running execution to stop, in this or another process, and waits until it has stopped, at most the runtime's
    /// [`stop_timeout`](crate::BatchRuntimeBuilder::stop_timeout). Returns `true` if it is STOPPED by then; otherwise the request stays in
    /// force. An execution whose process is dead is closed STOPPED. A batchlet's `#[cancel]` runs on the calling thread, before the wait,
    /// or on its own thread if the repository blocks for a second.
    ///
    /// # Errors
    /// `NoSuchJobExecution`, `JobExecutionNotRunning`.
    // Spec: OP-17, OP-18, D-60
    pub fn stop(&self, execution: JobExecutionId) -> Result<bool> {
        let running = self.shared.running().get(&execution).cloned();
        let running = running.filter(|running| !running.has_ended());
        let outcome = match &running {
            Some(running) => self.request_stop_here(execution, running),
            None => self.shared.repository.request_stop(execution),
        };
        match outcome? {
            None => return Err(JobOperatorError::NoSuchJobExecution(execution)),
            // The request may have ended it before the request was recorded.
            Some(StopOutcome::NotRunning) if running.is_some() && self.is_stopped(execution)? => {}
            Some(StopOutcome::NotRunning) => return Err(JobOperatorError::JobExecutionNotRunning(execution)),
            Some(StopOutcome::Closed) => {
                self.shared.observe_closed(&[execution]);
                return Ok(true);
            }
            Some(StopOutcome::Requested) => {}
        }
        match running {
            Some(running) => {
                if running.is_this_thread() || running.wait(Some(self.shared.limits.stop_timeout)).is_none() {
                    return Ok(false);
                }
            }
            // The request is recorded, so a process that is alive after all stops meanwhile, or has already done so.
            None if self.await_certainty(execution)? && !self.has_ended(execution)? => {
                return self.stop(execution);
            }
            None => {
                self.poll_until(execution, Some(self.shared.limits.stop_timeout))?;
            }
        }
        self.is_stopped(execution)
    }

    /// Records the request, then notifies the threads of this process. If recording blocks, they are notified before, because
    /// one of them may hold the database lock until it stops.
    fn request_stop_here(
        &self,
        execution: JobExecutionId,
        running: &Arc<Running>,
    ) -> std::result::Result<Option<StopOutcome>, RepositoryError> {
        let (recorded, waits) = bounded::<()>(0);
        let on_timeout = Arc::clone(running);
        // Without this thread the stop only takes longer.
        let patient = thread::start("batch-stop", move || {
            if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                on_timeout.request_stop();
            }
        });
        let outcome = self.shared.repository.request_stop(execution);
        drop(recorded);
        // A `#[cancel]` that it has called is complete when the stop returns.
        let _ = patient.map(JoinHandle::join);
        running.request_stop();
        outcome
    }

    /// Requests an execution of this process to stop, and returns at once.
    pub(crate) fn request_stop(&self, execution: JobExecutionId) {
        let running = self.shared.running().get(&execution).cloned();
        if let Some(running) = running
            && let Err(error) = self.request_stop_here(execution, &running)
        {
            tracing::warn!(%execution, %error, "the request to stop is not recorded");
        }
    }

    fn has_ended(&self, execution: JobExecutionId) -> Result<bool> {
        let execution = self.shared.repository.job_execution(execution)?;
        Ok(execution.is_none_or(|execution| execution.status.is_final()))
    }

    fn is_stopped(&self, execution: JobExecutionId) -> Result<bool> {
        let execution = self.shared.repository.job_execution(execution)?;
        Ok(execution.is_some_and(|execution| execution.status == BatchStatus::Stopped))
    }

    /// Waits until an execution has ended, in this or another process, and returns it. On a thread of that execution, which would deadlock,
    /// it returns the execution at once.
    ///
    /// # Errors
    /// `NoSuchJobExecution`; `JobExecutionLost` when its process is dead and its end is not recorded.
    pub fn wait(&self, execution: JobExecutionId) -> Result<JobExecution> {
        let running = self.shared.running().get(&execution).cloned();
        if self.is_on_thread_of(execution) {
            let current = self.shared.repository.job_execution(execution)?;
            return current.ok_or(JobOperatorError::NoSuchJobExecution(execution));
        }
        if let Some(Err(reason)) = running.and_then(|running| running.wait(None)) {
            return Err(JobOperatorError::JobExecutionLost { execution, reason });
        }
        match self.poll_until(execution, None)? {
            Some(ended) => Ok(ended),
            None => Err(JobOperatorError::NoSuchJobExecution(execution)),
        }
    }

    /// Returns whether the caller is a thread of the execution, which must not wait for it.
    pub(crate) fn is_on_thread_of(&self, execution: JobExecutionId) -> bool {
        let running = self.shared.running().get(&execution).cloned();
        running.is_some_and(|running| running.is_this_thread())
    }

    /// Waits until the observers of this runtime have received all events so far, up to five seconds, and then until each notification
    /// that is due was sent once, up to five seconds. After [`wait`](Self::wait) these
    /// include the end of the execution. Call it before what the observers use ends. The end of the runtime does the same, but on the
    /// thread that drops its last clone, which may be one of a job.
    // Spec: OBS-05
    pub fn flush_observers(&self) {
        self.shared.flush();
    }

    /// Records why this process is about to end while it runs executions. The runtime that closes them adds `cause` to their
    /// exit messages. Call it only right before the process ends: afterwards the executions may be unable to record their end.
    /// The command line calls it when an artifact calls `exit`.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn record_exit(&self, cause: &str) -> Result<()> {
        Ok(self.shared.repository.record_exit(cause)?)
    }

    /// Returns the progress of an execution that runs in this runtime; `None` if it does not run here.
    pub fn progress(&self, execution: JobExecutionId) -> Option<Progress> {
        let running = self.shared.running().get(&execution).cloned();
        running.map(|running| running.events.progress())
    }

    /// Polls the repository until the execution has ended. Returns `None` after `limit`, or if there is no such execution.
    fn poll_until(&self, execution: JobExecutionId, limit: Option<Duration>) -> Result<Option<JobExecution>> {
        let begin = std::time::Instant::now();
        loop {
            let Some(current) = self.shared.repository.job_execution(execution)? else {
                return Ok(None);
            };
            if current.status.is_final() {
                return Ok(Some(current));
            }
            if limit.is_some_and(|limit| begin.elapsed() >= limit) {
                return Ok(None);
            }
            // The execution may have ended between the two queries; then the next round finds it ended.
            let state = self.shared.repository.holder_state(execution)?;
            let alive = matches!(state, Some(HolderState::Alive | HolderState::Silent { .. }));
            let ended = || self.shared.repository.job_execution(execution);
            if !alive && !ended()?.is_some_and(|current| current.status.is_final()) {
                let reason = "its process is dead".to_owned();
                return Err(JobOperatorError::JobExecutionLost { execution, reason });
            }
            std::thread::sleep(POLL);
        }
    }
}
