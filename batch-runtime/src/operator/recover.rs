//! `recover`, `declare_dead`, `accept_unknown` and `abandon`: handles executions whose process is dead.

use super::{JobOperator, JobOperatorError, Result, StartError};
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::repository::{AbandonOutcome, AcceptOutcome, DeathOutcome, ExecutionFilter};
use crate::status::BatchStatus;

/// An execution whose process is dead, and its recovery.
#[derive(Debug)]
pub struct Recovered {
    /// The execution, as it was before.
    pub execution: JobExecution,
    /// The recovery.
    pub recovery: Recovery,
}

/// How a dead execution was recovered.
#[derive(Debug)]
#[non_exhaustive]
pub enum Recovery {
    /// It is resumed by this new execution, which runs.
    Restarted(JobExecutionId),
    /// It was requested to stop, and is closed STOPPED.
    Stopped,
    /// Another process took it over, or stopped it.
    TakenOver,
    /// It is not resumed, for example because its job no longer exists or is not restartable, or its process died too often.
    Failed(JobOperatorError),
}

impl JobOperator {
    /// Resumes all executions whose process is dead, of the jobs on the job path: each from its last checkpoint, by a new
    /// execution in this process. Executions that were requested to stop are closed STOPPED. Returns while the new executions
    /// run.
    ///
    /// # Errors
    /// When the repository fails.
    // Spec: OP-35
    pub fn recover(&self) -> Result<Vec<Recovered>> {
        let mut all = self.dead_executions()?;
        // Oldest first.
        all.reverse();
        let recover = |execution: JobExecution| {
            let recovery = self.recover_one(&execution);
            Recovered { execution, recovery }
        };
        Ok(all.into_iter().map(recover).collect())
    }

    /// Returns the executions that [`recover`](Self::recover) would resume or close, newest first: those that have not ended and
    /// whose process is dead, of the jobs on the job path. It omits executions of programs that hold no lease, such as Spring
    /// Batch, because their state is unknown.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn dead_executions(&self) -> Result<Vec<JobExecution>> {
        let open = ExecutionFilter {
            statuses: vec![BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping],
            ..ExecutionFilter::default()
        };
        self.shared.definitions.job_path.look_for_new_files();
        let known = self.shared.definitions.job_path.jobs();
        let mut dead = Vec::new();
        for execution in self.shared.repository.find_executions(&open)? {
            let is_dead = || self.is_alive(execution.id).map(|alive| !alive);
            if known.contains(&execution.job_name) && is_dead()? {
                dead.push(execution);
            }
        }
        Ok(dead)
    }

    fn recover_one(&self, execution: &JobExecution) -> Recovery {
        if execution.status == BatchStatus::Stopping {
            return match self.stop(execution.id) {
                Ok(_) => Recovery::Stopped,
                Err(error) => Recovery::Failed(error),
            };
        }
        let limit = Some(self.shared.limits.crash_limit);
        // The parameters of the dead execution may differ from the parameters of the instance.
        let parameters = match self.parameters(execution.id) {
            Ok(parameters) => parameters,
            Err(error) => return Recovery::Failed(error),
        };
        match self.restart_within(execution.id, parameters, limit) {
            Ok(id) => Recovery::Restarted(id),
            Err(JobOperatorError::JobRestart {
                cause: StartError::TakenOver | StartError::Running { .. },
                ..
            }) => Recovery::TakenOver,
            Err(error) => Recovery::Failed(error),
        }
    }

    /// Closes an execution of a program that holds no lease, such as Spring Batch, whose process the caller knows to be dead. It
    /// becomes FAILED with the exit status `CRASHED`, or STOPPED if it was requested to stop, and its instance can be resumed. If
    /// the process is alive after all, its next update of the execution fails.
    ///
    /// # Errors
    /// `NoSuchJobExecution`; `JobExecutionIsRunning` when a runtime holds its lease, which expires without help;
    /// `JobExecutionNotRunning` when it has ended.
    // Spec: OP-35
    pub fn declare_dead(&self, execution: JobExecutionId) -> Result<()> {
        match self.shared.repository.declare_dead(execution)? {
            Some(DeathOutcome::Closed) => {
                self.shared.observe_closed(&[execution]);
                Ok(())
            }
            Some(DeathOutcome::Running { .. }) if self.await_certainty(execution)? => {
                self.declare_dead(execution)
            }
            Some(DeathOutcome::Running { owner }) => {
                Err(JobOperatorError::JobExecutionIsRunning { execution, owner })
            }
            Some(DeathOutcome::Ended) => Err(JobOperatorError::JobExecutionNotRunning(execution)),
            None => Err(JobOperatorError::NoSuchJobExecution(execution)),
        }
    }

    /// Accepts an execution that is UNKNOWN, or that has a step that is: Spring Batch could not record its end. The caller has checked what it
    /// has written. What is UNKNOWN becomes FAILED, with `reason` in its message, and the instance can be resumed.
    ///
    /// # Errors
    /// `NoSuchJobExecution`; `JobExecutionNotUnknown`.
    // Spec: REPO-92
    pub fn accept_unknown(&self, execution: JobExecutionId, reason: &str) -> Result<()> {
        match self.shared.repository.accept_unknown(execution, reason)? {
            Some(AcceptOutcome::Accepted) => Ok(()),
            Some(AcceptOutcome::Known) => Err(JobOperatorError::JobExecutionNotUnknown(execution)),
            None => Err(JobOperatorError::NoSuchJobExecution(execution)),
        }
    }

    /// Abandons an execution that is not running, or whose process is dead: it becomes ABANDONED, and its instance can no longer be
    /// resumed. A COMPLETED execution can be abandoned too, for example because its result is wrong; what it has written remains.
    ///
    /// # Errors
    /// `NoSuchJobExecution`; `JobExecutionIsRunning`; `JobInstanceAlreadyComplete` if another execution has completed the instance.
    // Spec: STATUS-23, JAK-35
    pub fn abandon(&self, execution: JobExecutionId) -> Result<()> {
        match self.shared.repository.abandon(execution)? {
            Some(AbandonOutcome::Abandoned) => {
                // Of one that had ended nothing is emitted, see `observe_closed`.
                self.shared.observe_closed(&[execution]);
                Ok(())
            }
            Some(AbandonOutcome::Running { .. }) if self.await_certainty(execution)? => {
                self.abandon(execution)
            }
            Some(AbandonOutcome::Running { owner }) => {
                Err(JobOperatorError::JobExecutionIsRunning { execution, owner })
            }
            Some(AbandonOutcome::Complete) => {
                let found = self.shared.repository.job_execution(execution)?;
                let job = found.map_or_else(String::new, |found| found.job_name);
                Err(JobOperatorError::JobInstanceAlreadyComplete { job, execution })
            }
            None => Err(JobOperatorError::NoSuchJobExecution(execution)),
        }
    }
}
