//! The step that runs a nested job, for observers.

use super::{JobTrace, ObservedJob, ObservedOuter};
use crate::execution::OuterStep;
use crate::parameters::JobParameters;
use crate::repository::{JobRepository, RepositoryError};

/// Returns the step that runs a job with these parameters, with the steps that run its job in turn. `None` if it is not a nested job, or if
/// its outer job does not run.
// Spec: NEST-04
pub(crate) fn outer_of(
    repository: &dyn JobRepository,
    parameters: &JobParameters,
) -> Option<Box<ObservedOuter>> {
    found(repository, parameters).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the outer job; observers do not see that this one is nested");
        None
    })
}

fn found(
    repository: &dyn JobRepository,
    parameters: &JobParameters,
) -> Result<Option<Box<ObservedOuter>>, RepositoryError> {
    let mut chain = Vec::new();
    let mut next = OuterStep::of(parameters);
    while let Some(outer) = next.take() {
        let execution = repository.job_executions(outer.instance)?.into_iter().next();
        // Parameters that were written by hand could name a cycle.
        let is_known = |instance| {
            chain
                .iter()
                .any(|(job, _): &(ObservedJob, _)| job.instance == instance)
        };
        let execution =
            execution.filter(|execution| !execution.status.is_final() && !is_known(outer.instance));
        if let Some(execution) = execution {
            next = OuterStep::of(&repository.parameters(execution.id)?);
            let job = ObservedJob {
                job: execution.job_name,
                instance: execution.instance_id,
                execution: execution.id,
                trace: JobTrace {
                    context: repository.traceparent(execution.id)?,
                    previous: None,
                },
                outer: None,
            };
            chain.push((job, outer.step));
        }
    }
    let nested = |above, (job, step)| {
        let job = ObservedJob { outer: above, ..job };
        Some(Box::new(ObservedOuter { job, step }))
    };
    Ok(chain.into_iter().rev().fold(None, nested))
}
