//! The ends of executions whose process is dead, for the observers of the process that closes them.
// Spec: OBS-07

use std::sync::Arc;

use super::dataset_reporter::NoProgress;
use super::{ClosedJob, JobEventKind, JobTrace, ObservedJob, Observers};
use crate::ids::JobExecutionId;
use crate::repository::{JobRepository, RepositoryError, rules};

impl Observers {
    /// Emits the ends of executions that were closed because their process is dead. Ignores others.
    pub(crate) fn emit_closed(&self, repository: &dyn JobRepository, closed: &[JobExecutionId]) {
        if !self.are_any() {
            return;
        }
        for id in closed {
            match closed_job(repository, *id) {
                Ok(Some((job, closed))) => {
                    let kind = JobEventKind::JobClosed(Box::new(closed));
                    self.emit(&Arc::new(job), None, kind, &NoProgress);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(execution = %id, %error, "the end of an execution whose owner was dead is not observed");
                }
            }
        }
    }
}

fn closed_job(
    repository: &dyn JobRepository,
    id: JobExecutionId,
) -> Result<Option<(ObservedJob, ClosedJob)>, RepositoryError> {
    let execution = repository.job_execution(id)?;
    // An abandoned one keeps the exit status.
    let Some(execution) = execution.filter(|one| rules::has_closed(&one.exit_status, &one.exit_message))
    else {
        return Ok(None);
    };
    let mut steps = repository.step_executions(id)?;
    steps.retain(|step| rules::has_closed(&step.exit_status, &step.exit_message));
    let job = ObservedJob {
        job: execution.job_name.clone(),
        instance: execution.instance_id,
        execution: id,
        trace: JobTrace {
            context: repository.traceparent(id)?,
            previous: None,
        },
        outer: None,
    };
    Ok(Some((job, ClosedJob { execution, steps })))
}
