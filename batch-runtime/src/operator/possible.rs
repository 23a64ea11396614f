//! Checks whether an action on an execution is possible, for pages that ask before it.

use super::definitions::Wanted;
use super::{JobOperator, JobOperatorError, Result, StartError};
use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::repository::{AbandonOutcome, ClaimError, HolderState, rules};
use crate::status::BatchStatus;

/// An action on an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecutionAction {
    /// [`JobOperator::stop`].
    Stop,
    /// [`JobOperator::restart`].
    Restart,
    /// [`JobOperator::abandon`].
    Abandon,
    /// [`JobOperator::declare_dead`].
    DeclareDead,
}

impl JobOperator {
    /// Checks whether the state of an execution permits an action, and changes nothing. An action that waits until a process is certainly
    /// dead is permitted. A restart may still fail: its artifacts and secrets are not checked.
    ///
    /// # Errors
    /// The error that the action would return, or the error of the repository.
    // Spec: CON-15
    pub fn check_action(&self, execution: JobExecutionId, action: ExecutionAction) -> Result<()> {
        let repository = &self.shared.repository;
        let found = repository.job_execution(execution)?;
        let found = found.ok_or(JobOperatorError::NoSuchJobExecution(execution))?;
        match action {
            ExecutionAction::Stop => match found.status.is_final() {
                true => Err(JobOperatorError::JobExecutionNotRunning(execution)),
                false => Ok(()),
            },
            ExecutionAction::Restart => self.check_restart(&found),
            ExecutionAction::Abandon => self.check_abandon(&found),
            ExecutionAction::DeclareDead => match self.alive_holder(&found)? {
                Some(owner) => Err(JobOperatorError::JobExecutionIsRunning { execution, owner }),
                None if found.status.is_final() => Err(JobOperatorError::JobExecutionNotRunning(execution)),
                None => Ok(()),
            },
        }
    }

    fn check_restart(&self, found: &JobExecution) -> Result<()> {
        let (execution, repository) = (found.id, &self.shared.repository);
        let reject = |cause| JobOperatorError::JobRestart { execution, cause };
        let parameters = repository.original_parameters(found.instance_id)?;
        let resolved = self.shared.definitions.resolve(Wanted::of(found), &parameters);
        let job = match resolved {
            Ok((resolved, _)) => resolved.job,
            Err(JobOperatorError::JobStart { cause, .. }) => return Err(reject(cause)),
            Err(other) => return Err(other),
        };
        let executions = repository.job_executions(found.instance_id)?;
        let newest = executions.first();
        if let Some(newest) = newest.filter(|newest| newest.id != execution)
            && job.dialect.restarts_latest_execution_only()
        {
            let latest = newest.id;
            return Err(JobOperatorError::JobExecutionNotMostRecent { execution, latest });
        }
        let statuses =
            || Ok::<_, JobOperatorError>(executions.iter().map(|one| (one.id, one.status)).collect());
        let running = self.running(found, newest)?;
        match rules::rejection(running, statuses, newest, job.restartable)? {
            Some(ClaimError::Running { execution, owner }) => {
                Err(reject(StartError::Running { execution, owner }))
            }
            Some(error) => Err(self.rejection(&found.job_name, error, &reject)),
            None => Ok(()),
        }
    }

    fn check_abandon(&self, found: &JobExecution) -> Result<()> {
        let executions = self.shared.repository.job_executions(found.instance_id)?;
        if let Some(ClaimError::Running { owner, .. }) = self.running(found, executions.first())? {
            let execution = found.id;
            return Err(JobOperatorError::JobExecutionIsRunning { execution, owner });
        }
        let is_complete = executions.iter().any(|one| one.status == BatchStatus::Completed);
        match rules::abandoned(found.status, is_complete) {
            AbandonOutcome::Complete => Err(JobOperatorError::JobInstanceAlreadyComplete {
                job: found.job_name.clone(),
                execution: found.id,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the rejection if the instance of an execution runs.
    fn running(&self, found: &JobExecution, newest: Option<&JobExecution>) -> Result<Option<ClaimError>> {
        let holders = self.shared.repository.holders(&[found.instance_id])?;
        let holder = holders.get(&found.instance_id);
        Ok(match holder.filter(|holder| holder.state == HolderState::Alive) {
            Some(holder) => Some(ClaimError::Running {
                execution: holder.execution,
                owner: holder.owner.clone(),
            }),
            None => rules::running_without_lease(newest, holder.map(|holder| holder.execution)),
        })
    }

    /// Returns the process that runs the instance of an execution, if it holds the lease and is alive.
    fn alive_holder(&self, found: &JobExecution) -> Result<Option<String>> {
        let mut holders = self.shared.repository.holders(&[found.instance_id])?;
        let holder = holders.remove(&found.instance_id);
        Ok(holder
            .filter(|holder| holder.state == HolderState::Alive)
            .map(|holder| holder.owner))
    }
}
