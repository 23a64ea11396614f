//! The outer jobs of a nested one.

use batch_runtime::prelude::*;
use batch_runtime::{JobInstanceId, JobOperator, JobOperatorError, ParameterValue};

/// The identifying parameter of a nested job with the instance of its outer job.
pub(super) const INSTANCE: &str = "parent.instance";
/// That with the step that runs it.
pub(super) const STEP: &str = "parent.step";

/// Returns the chain of jobs from `job` to itself, if `job` is the one that `runs` belongs to, or one of its outer jobs.
pub(super) fn cycle(
    operator: &JobOperator,
    runs: &JobContext,
    job: &str,
) -> Result<Option<String>, JobOperatorError> {
    let mut way = vec![job.to_owned(), runs.id().to_owned()];
    let mut parameters = operator.parameters(runs.execution_id())?;
    while way.last().is_some_and(|last| last != job) {
        let parent = parameters.iter().find(|(name, _)| *name == INSTANCE);
        let Some((_, ParameterValue::Long(parent))) = parent.map(|(name, parent)| (name, &parent.value))
        else {
            return Ok(None);
        };
        let Some(parent) = operator.job_instance(JobInstanceId(*parent))? else {
            return Ok(None);
        };
        let Some(execution) = operator.job_executions(parent.id)?.pop() else {
            return Ok(None);
        };
        way.push(parent.job_name);
        parameters = operator.parameters(execution.id)?;
    }
    way.reverse();
    Ok(Some(way.join(" runs ")))
}
