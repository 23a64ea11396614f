//! Remote launches: queued in the repository, and run by whichever worker takes them.

use super::definitions::{Wanted, rejecting};
use super::{JobOperator, JobOperatorError, Result, StartError};
use crate::clock::Timestamp;
use crate::error::error_chain;
use crate::ids::{JobExecutionId, LaunchId};
use crate::parameters::JobParameters;
use crate::repository::{LaunchPhase, LaunchRow, TakenLaunch, WithdrawOutcome};
use crate::status::BatchStatus;

/// A remote launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchInfo {
    /// The id.
    pub id: LaunchId,
    /// The job.
    pub job: String,
    /// The queue whose workers may run it.
    pub queue: String,
    /// Its status.
    pub status: LaunchStatus,
    /// Its latest job execution. It has several if workers have died or were drained.
    pub execution: Option<JobExecutionId>,
    /// The worker that runs it or has run it.
    pub worker: Option<String>,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Why no worker runs it: the reason of the last one that did not, or the problem that every worker would have. May be empty.
    pub message: String,
}

/// The status of a remote launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchStatus {
    /// It waits for a worker; also if its worker has died or was drained.
    Queued,
    /// A worker runs it.
    Running,
    /// Its job execution has ended with this status.
    Ended(BatchStatus),
    /// No worker can run it; the message gives the reason.
    Rejected,
    /// It was stopped before a worker ran it.
    Withdrawn,
    /// Its job execution has ended and was purged.
    Purged,
}

/// The result of starting a launch.
pub(crate) enum LaunchStart {
    /// It runs.
    Running(JobExecutionId),
    /// This worker cannot run it, but another one may be able to.
    Declined(String),
    /// It may run later: the instance runs elsewhere, or the repository fails.
    Later(String),
    /// The instance is complete.
    Complete(JobExecutionId),
    /// No worker can run it.
    Rejected(String),
    /// It is not this worker's any more.
    TakenOver,
}

impl JobOperator {
    /// Queues a [`launch`](Self::launch) for the workers of a queue, and returns at once. Any of them that has the job runs it; if that worker
    /// dies or is drained, another one resumes it. An instance never runs twice at the same time. `queue` is `default` unless
    /// workers were started with another one.
    ///
    /// The same call again returns the same id while the launch is queued or runs.
    ///
    /// # Errors
    /// As [`launch`](Self::launch), for everything that can be known before a worker runs it.
    // Spec: DISP-15
    pub fn launch_remote(
        &self,
        job: &str,
        parameters: impl Into<JobParameters>,
        queue: &str,
    ) -> Result<LaunchId> {
        let parameters = parameters.into();
        self.check_queue(queue)
            .map_err(|problem| rejecting(job)(StartError::Remote(problem)))?;
        let (prepared, mut wish) = self.prepare_launch(job, &parameters)?;
        let fingerprint = self.fingerprint(Wanted::Id(job), &wish.parameters)?;
        // The worker adds the parameters of the instance, as this call did to check the job.
        wish.parameters = parameters;
        let store = self.shared.repository.worker_store()?;
        let submitted = store.submit_launch(&wish.request(&prepared), queue, &fingerprint);
        submitted.map_err(|error| self.rejection(job, error, &rejecting(job)))
    }

    /// Returns the remote launches, by id; ended ones are kept for a week.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn launches(&self) -> Result<Vec<LaunchInfo>> {
        let Ok(store) = self.shared.repository.worker_store() else {
            return Ok(Vec::new());
        };
        let rows = store.launches()?;
        Ok(rows.into_iter().map(LaunchInfo::of).collect())
    }

    /// Withdraws a launch that no worker runs; otherwise [stops](Self::stop) its job execution. Returns `true` if it does not run any
    /// more.
    ///
    /// # Errors
    /// `NoSuchLaunch`, `LaunchNotRunning`; else as [`stop`](Self::stop).
    // Spec: DISP-15
    pub fn stop_launch(&self, launch: LaunchId) -> Result<bool> {
        let Ok(store) = self.shared.repository.worker_store() else {
            return Err(JobOperatorError::NoSuchLaunch(launch));
        };
        match store.withdraw_launch(launch)? {
            WithdrawOutcome::Unknown => Err(JobOperatorError::NoSuchLaunch(launch)),
            WithdrawOutcome::Withdrawn => Ok(true),
            WithdrawOutcome::Runs(execution) => self.stop(execution),
            WithdrawOutcome::NotRunning => Err(JobOperatorError::LaunchNotRunning(launch)),
        }
    }

    /// Runs a launch that this worker has taken, and returns while it runs.
    pub(crate) fn start_launch(&self, taken: &TakenLaunch) -> LaunchStart {
        let parameters = match &taken.parameters {
            Ok(parameters) => parameters,
            Err(problem) => {
                return LaunchStart::Rejected(format!(
                    "its parameters in BATCH_LAUNCH cannot be read: {problem}"
                ));
            }
        };
        let prepared = self
            .prepare_launch(&taken.job, parameters)
            .and_then(|(prepared, wish)| {
                let here = self.fingerprint(Wanted::Id(&taken.job), &wish.parameters)?;
                Ok((prepared, wish, here))
            });
        let (prepared, mut wish, here) = match prepared {
            Ok(prepared) => prepared,
            Err(JobOperatorError::Repository(error)) => return LaunchStart::Later(error_chain(&error)),
            Err(error) => return LaunchStart::Declined(error_chain(&error)),
        };
        if here != taken.fingerprint {
            return LaunchStart::Declined(format!(
                "the job has the fingerprint {here} there, and {} where it was launched; start workers with the same Job XML and \
                 system properties, or launch it again",
                taken.fingerprint
            ));
        }
        wish.launch = Some(taken.id);
        match self.claim_and_run(prepared, wish, &rejecting(&taken.job)) {
            Ok(execution) => LaunchStart::Running(execution),
            Err(JobOperatorError::JobInstanceAlreadyComplete { execution, .. }) => {
                LaunchStart::Complete(execution)
            }
            Err(JobOperatorError::JobStart {
                cause: StartError::TakenOver,
                ..
            }) => LaunchStart::TakenOver,
            Err(
                error @ (JobOperatorError::Repository(_)
                | JobOperatorError::JobExecutionAlreadyRunning { .. }
                | JobOperatorError::JobStart {
                    // It may be a launch to resume, which has to wait for the others.
                    cause: StartError::Thread(_) | StartError::OneAtATime { .. },
                    ..
                }),
            ) => LaunchStart::Later(error_chain(&error)),
            Err(error) => LaunchStart::Rejected(error_chain(&error)),
        }
    }
}

impl LaunchInfo {
    fn of(row: LaunchRow) -> Self {
        let status = match (row.phase, row.execution) {
            (LaunchPhase::Queued, _) => LaunchStatus::Queued,
            (LaunchPhase::Rejected, _) => LaunchStatus::Rejected,
            (LaunchPhase::Withdrawn, _) => LaunchStatus::Withdrawn,
            (LaunchPhase::Taken | LaunchPhase::Ended, Some((_, status))) if status.is_final() => {
                LaunchStatus::Ended(status)
            }
            (LaunchPhase::Taken, _) if !row.is_worker_alive => LaunchStatus::Queued,
            (LaunchPhase::Taken, _) => LaunchStatus::Running,
            (LaunchPhase::Ended, _) => LaunchStatus::Purged,
        };
        Self {
            id: row.id,
            job: row.job,
            queue: row.queue,
            status,
            execution: row.execution.map(|(execution, _)| execution),
            worker: row.worker,
            submitted: Timestamp(row.submitted),
            message: row.message,
        }
    }
}
