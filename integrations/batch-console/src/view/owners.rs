//! The processes that run executions and their partitions, or have run them, by their names as lease holders.

use std::collections::BTreeMap;

use batch_runtime::execution::{JobExecution, StepExecution};
use batch_runtime::operator::ExecutionState;
use batch_runtime::{JobOperator, JobOperatorError, StepExecutionId};

/// The exit status of an execution whose process has died.
const CRASHED: &str = "CRASHED";

/// Returns the process of an execution, also after its end; empty if it is unknown.
pub(crate) fn of_execution<'a>(execution: &'a JobExecution, state: Option<&'a ExecutionState>) -> &'a str {
    let known = state.and_then(|state| state.last_owner.as_deref());
    known.or_else(|| crashed(execution)).unwrap_or_default()
}

/// Returns the process of an execution that has died, as the repository has closed it: `.. (owner HOST/PROCESS/..)`.
fn crashed(execution: &JobExecution) -> Option<&str> {
    let message = &execution.exit_message;
    let (_, rest) = message.split_once("(owner ").filter(|_| is_crashed(execution))?;
    let (owner, _) = rest.split_once(')')?;
    owner.contains('/').then_some(owner)
}

/// Returns whether the process of an execution has died before its end.
pub(crate) fn is_crashed(execution: &JobExecution) -> bool {
    execution.exit_status == CRASHED
}

/// Returns the processes of the listed partitions, and of the steps in them. One that no worker has claimed has run in the process of the
/// execution, `own`.
pub(crate) fn of_partitions(
    operator: &JobOperator,
    all: &[StepExecution],
    listed: &[StepExecution],
    own: &str,
) -> Result<BTreeMap<StepExecutionId, String>, JobOperatorError> {
    let rows = listed.iter().filter(|step| step.is_of_partition());
    // A worker claims `sort:1`, and runs `sort:1/load`.
    let claimed: BTreeMap<StepExecutionId, &str> = rows
        .map(|step| (step.id, step.step_name.split('/').next().unwrap_or_default()))
        .collect();
    let names: BTreeMap<&str, StepExecutionId> = match claimed.is_empty() {
        true => return Ok(BTreeMap::new()),
        false => all
            .iter()
            .map(|step| (step.step_name.as_str(), step.id))
            .collect(),
    };
    let row_of = |name: &str| names.get(name).copied();
    let mut rows: Vec<StepExecutionId> = claimed.values().filter_map(|name| row_of(name)).collect();
    rows.sort_unstable();
    rows.dedup();
    let workers = operator.partition_owners(&rows)?;
    let owner = |name: &str| row_of(name).and_then(|row| workers.get(&row));
    let owners = claimed
        .into_iter()
        .map(|(step, name)| (step, owner(name).map_or(own, String::as_str).to_owned()));
    Ok(owners.collect())
}
