//! The turns of jobs whose executions run one at a time.
// Spec: TURN-01 to TURN-03

use std::collections::BTreeMap;

use crate::ids::{JobExecutionId, JobInstanceId};

/// An execution that has the turn of its job, or waits for it.
pub(crate) struct Turn {
    pub(crate) execution: JobExecutionId,
    pub(crate) is_taken: bool,
    /// `None` if the execution has ended, or is deleted.
    pub(crate) open_instance: Option<JobInstanceId>,
}

/// Returns the execution of another instance that has the turn of a job.
pub(crate) fn turn_of_other(turns: &[Turn], own: Option<JobInstanceId>) -> Option<JobExecutionId> {
    // A claim closes the open executions of its own instance.
    let is_of_other = |turn: &&Turn| turn.is_taken && turn.open_instance.is_some_and(|id| Some(id) != own);
    turns.iter().find(is_of_other).map(|turn| turn.execution)
}

/// Returns the living execution that has the turn, else the first that waits before `own`; `None` if `own` has the turn. The turns are in
/// the order of their executions.
pub(crate) fn turn_before<E>(
    turns: &[Turn],
    own: JobExecutionId,
    mut is_alive: impl FnMut(&Turn) -> Result<bool, E>,
) -> Result<Option<JobExecutionId>, E> {
    if turns.iter().any(|turn| turn.is_taken && turn.execution == own) {
        return Ok(None);
    }
    let taken = turns.iter().filter(|turn| turn.is_taken);
    let waiting = turns.iter().filter(|turn| !turn.is_taken && turn.execution < own);
    for turn in taken.chain(waiting) {
        if is_alive(turn)? {
            return Ok(Some(turn.execution));
        }
    }
    Ok(None)
}

/// Returns the executions of all jobs that wait, each with the one that has the turn of its job, else the first that waits. The open
/// executions, with their jobs and whether they have the turn, are in the order of their ids.
pub(crate) fn waiting(open: &[(String, JobExecutionId, bool)]) -> BTreeMap<JobExecutionId, JobExecutionId> {
    let mut first: BTreeMap<&str, JobExecutionId> = BTreeMap::new();
    for (job, execution, _) in open.iter().filter(|(_, _, is_taken)| *is_taken) {
        first.insert(job, *execution);
    }
    let mut waiting = BTreeMap::new();
    for (job, execution, _) in open {
        let before = *first.entry(job).or_insert(*execution);
        if before != *execution {
            waiting.insert(*execution, before);
        }
    }
    waiting
}
