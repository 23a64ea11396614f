//! The spans of the log: a thread of a job runs in the job's span, a thread of a step in the step's span.

use tracing::Span;

use crate::execution::StepExecution;
use crate::repository::Lease;

/// Returns the span for the threads of a job. Enabled at every level, so that warnings show their origin.
pub(super) fn job_span(job: &str, lease: &Lease) -> Span {
    tracing::error_span!(
        "job",
        job,
        instance = lease.instance_id.0,
        execution = lease.execution_id.0
    )
}

/// Returns the span of a step, with the name of its row in the repository.
pub(super) fn step_span(execution: &StepExecution) -> Span {
    tracing::error_span!(
        "step",
        step = execution.step_name,
        step_execution = execution.id.0
    )
}
