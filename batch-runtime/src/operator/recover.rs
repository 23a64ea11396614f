//! `recover` and `abandon`: what becomes of executions whose process is dead.

use super::{JobOperator, JobOperatorError, Result, StartError};
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::repository::{AbandonOutcome, DeathOutcome, ExecutionFilter};
use crate::status::BatchStatus;

/// An execution whose process was found dead, and what was done about it.
#[derive(Debug)]
pub struct Recovered {
    /// The execution, as it was found.
    pub execution: JobExecution,
    /// What was done.
    pub recovery: Recovery,
}

/// What was done about a dead execution.
#[derive(Debug)]
#[non_exhaustive]
pub enum Recovery {
    /// It goes on in a new execution, which runs.
    Restarted(JobExecutionId),
    /// It was to stop, and is closed STOPPED.
    Stopped,
    /// Somebody else was faster: took it over, or stopped it.
    Overtaken,
    /// It does not go on, for this reason: its job is gone or not restartable, its process dies again and again ...
    Refused(JobOperatorError),
}

impl JobOperator {
    /// Looks for executions that have not ended and whose process is dead, of all jobs that are on the job path of this runtime,
    /// and lets them go on from their last checkpoints: each in a new execution that runs here. Those that were to stop
    /// are closed STOPPED. Returns what was done, while the new executions run.
    ///
    /// # Errors
    /// When the repository fails.
    ///
    /// Spec: OP-35
    pub fn recover(&self) -> Result<Vec<Recovered>> {
        let mut all = self.dead_executions()?;
        // The oldest first, in the order in which they were started.
        all.reverse();
        let recover = |execution: JobExecution| {
            let recovery = self.recover_one(&execution);
            Recovered { execution, recovery }
        };
        Ok(all.into_iter().map(recover).collect())
    }

    /// The executions that have not ended and whose process is dead, of the jobs on the job path, newest first. Those of programs
    /// that keep no lease, such as Spring Batch, are not among them: nobody can tell whether they live.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn dead_executions(&self) -> Result<Vec<JobExecution>> {
        let open = ExecutionFilter {
            statuses: vec![BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping],
            ..ExecutionFilter::default()
        };
        self.inner.definitions.job_path.look_for_new_files();
        let known = self.inner.definitions.job_path.jobs();
        let mut dead = Vec::new();
        for execution in self.inner.repository.find_executions(&open)? {
            if known.contains(&execution.job_name) && !self.inner.repository.is_running(execution.id)? {
                dead.push(execution);
            }
        }
        Ok(dead)
    }

    fn recover_one(&self, execution: &JobExecution) -> Recovery {
        if execution.status == BatchStatus::Stopping {
            return match self.stop(execution.id) {
                Ok(_) => Recovery::Stopped,
                Err(error) => Recovery::Refused(error),
            };
        }
        let limit = Some(self.inner.crash_limit);
        // It goes on with what it was started with, which may be other than what the instance was.
        let parameters = match self.parameters(execution.id) {
            Ok(parameters) => parameters,
            Err(error) => return Recovery::Refused(error),
        };
        match self.restart_within(execution.id, parameters, limit) {
            Ok(id) => Recovery::Restarted(id),
            Err(JobOperatorError::JobRestart {
                cause: StartError::Overtaken | StartError::Running { .. },
                ..
            }) => Recovery::Overtaken,
            Err(error) => Recovery::Refused(error),
        }
    }

    /// Closes an execution that has not ended, because its process is dead: it is FAILED with the exit status `CRASHED`, or STOPPED if it
    /// was to stop, and its instance can go on. For programs that keep no lease, such as Spring Batch: nobody but you can know
    /// that they are dead. Should it live all the same, its next update of the execution fails.
    ///
    /// # Errors
    /// `NoSuchJobExecution`; `JobExecutionIsRunning` when a runtime holds its lease, which dies by itself;
    /// `JobExecutionNotRunning` when it has ended.
    ///
    /// Spec: OP-35
    pub fn declare_dead(&self, execution: JobExecutionId) -> Result<()> {
        match self.inner.repository.declare_dead(execution)? {
            Some(DeathOutcome::Closed) => Ok(()),
            Some(DeathOutcome::Running { owner }) => {
                Err(JobOperatorError::JobExecutionIsRunning { execution, owner })
            }
            Some(DeathOutcome::Ended) => Err(JobOperatorError::JobExecutionNotRunning(execution)),
            None => Err(JobOperatorError::NoSuchJobExecution(execution)),
        }
    }

    /// Gives up an execution that failed or stopped, or whose process is dead: it is ABANDONED, and nothing continues its
    /// instance any more.
    ///
    /// # Errors
    /// `NoSuchJobExecution`, `JobExecutionIsRunning`, `JobInstanceAlreadyComplete`.
    pub fn abandon(&self, execution: JobExecutionId) -> Result<()> {
        match self.inner.repository.abandon(execution)? {
            Some(AbandonOutcome::Abandoned) => Ok(()),
            Some(AbandonOutcome::Running { owner }) => {
                Err(JobOperatorError::JobExecutionIsRunning { execution, owner })
            }
            Some(AbandonOutcome::Complete) => {
                let found = self.inner.repository.job_execution(execution)?;
                let job = found.map_or_else(String::new, |found| found.job_name);
                Err(JobOperatorError::JobInstanceAlreadyComplete { job, execution })
            }
            None => Err(JobOperatorError::NoSuchJobExecution(execution)),
        }
    }
}
