//! The outer jobs of a nested one.

use batch_runtime::execution::OuterStep;
use batch_runtime::prelude::*;
use batch_runtime::{JobOperator, JobOperatorError};

/// Returns the chain of jobs from `job` to itself, if `job` is the one that `runs` belongs to, or one of its outer jobs.
pub(super) fn cycle(
    operator: &JobOperator,
    runs: &JobContext,
    job: &str,
) -> Result<Option<String>, JobOperatorError> {
    let mut way = vec![job.to_owned(), runs.id().to_owned()];
    let mut parameters = operator.parameters(runs.execution_id())?;
    while way.last().is_some_and(|last| last != job) {
        let Some(outer) = OuterStep::of(&parameters) else {
            return Ok(None);
        };
        let Some(parent) = operator.job_instance(outer.instance)? else {
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
