//! The rules that all kinds of repositories follow: which instances may run, how the executions of a dead owner are closed, and what the
//! next execution of a step continues.

mod notifications;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Timestamp;
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::{
    AbandonOutcome, ClaimError, ClaimRequest, Ending, LaunchPhase, RepositoryError, StepHistory, StepState,
    WithdrawOutcome,
};
use crate::status::BatchStatus;

pub(crate) use notifications::{notifications_of_claim, notifications_of_end};
pub(crate) use turns::{Turn, turn_before, turn_of_other, waiting};

/// The largest number that is read from a row. Sums of a few are far from an overflow.
pub(crate) const MAX_NUMBER: i64 = i64::MAX / 16;

/// Returns whether a program may have counted a number. Rows and archives are only as right as those who write them.
// Spec: LOSS-02
pub(crate) fn is_number(value: i64) -> bool {
    (0..=MAX_NUMBER).contains(&value)
}

/// Exit status of an execution whose process died.
const CRASHED: &str = "CRASHED";
/// The beginning of the message of an execution that was to stop when its owner died.
const STOPPED_DEAD: &str = "it was stopped after its process had died";

/// The statuses of executions that have not ended.
pub(crate) const OPEN: [BatchStatus; 3] =
    [BatchStatus::Starting, BatchStatus::Started, BatchStatus::Stopping];

/// Returns a text as EXIT_MESSAGE stores it: truncated at a character boundary, without NUL, which not every database
/// accepts.
// Spec: REPO-76
pub(crate) fn stored_message(text: &str, max: usize) -> String {
    text.chars()
        .filter(|character| *character != '\0')
        .take(max)
        .collect()
}

/// Returns the row of a step execution that is inserted. Spring Batch writes the version 1 with STARTED, too.
pub(crate) fn new_step(
    id: i64,
    execution: JobExecutionId,
    name: &str,
    status: BatchStatus,
    now: Timestamp,
) -> StepExecution {
    StepExecution {
        id: StepExecutionId(id),
        job_execution_id: execution,
        step_name: name.to_owned(),
        started: now,
        ended: None,
        last_updated: now,
        status,
        exit_status: EXECUTING.into(),
        exit_message: String::new(),
        counters: StepCounters::default(),
        user_data: None,
        version: new_step_version(status),
    }
}

/// The exit status of a step that has not ended.
pub(crate) const EXECUTING: &str = "EXECUTING";

/// Returns the version of a new row: a claim makes STARTING STARTED, and adds 1.
pub(crate) fn new_step_version(status: BatchStatus) -> i64 {
    i64::from(status == BatchStatus::Started)
}

/// Returns the rejection if the newest execution of an instance is open, and is not the one that the lease is for: the lease does not cover
/// other executions, so a program that keeps no lease runs it.
pub(crate) fn running_without_lease(
    newest: Option<&JobExecution>,
    lease_is_for: Option<JobExecutionId>,
) -> Option<ClaimError> {
    let open = newest.filter(|newest| !newest.status.is_final() && lease_is_for != Some(newest.id))?;
    Some(ClaimError::Running {
        execution: open.id,
        owner: format!(
            "another program that keeps no lease, such as Spring Batch; if its process is dead, `recover --declare-dead {}` closes it",
            open.id
        ),
    })
}

/// Returns the error of a job execution without a context. Without it, a rollback that is still owed would be forgotten.
pub(crate) fn no_context(id: JobExecutionId) -> RepositoryError {
    RepositoryError::Corrupt {
        row: format!("the context of job execution {id}"),
        problem: "is missing".into(),
    }
}

/// Returns the error of a step that its job execution has executed already. An index cannot hold this rule: a step of Spring Batch may run
/// several times.
// Spec: REPO-53
pub(crate) fn known_step(id: StepExecutionId, name: &str) -> RepositoryError {
    RepositoryError::Corrupt {
        row: format!("step execution {id}"),
        problem: format!("is already the one of step `{name}` in this job execution").into(),
    }
}

/// Returns the reason why an instance may not run: one of its executions is `running`, is complete or abandoned, or UNKNOWN, or its job is
/// not restartable.
pub(crate) fn rejection<E>(
    running: Option<ClaimError>,
    executions: impl FnOnce() -> Result<Vec<(JobExecutionId, BatchStatus)>, E>,
    newest: Option<&JobExecution>,
    restartable: bool,
) -> Result<Option<ClaimError>, E> {
    if running.is_some() {
        return Ok(running);
    }
    let executions = executions()?;
    let with = |wanted: BatchStatus| executions.iter().find(|(_, status)| *status == wanted);
    if let Some((execution, _)) = with(BatchStatus::Completed) {
        return Ok(Some(ClaimError::Complete {
            execution: *execution,
        }));
    }
    if let Some((execution, _)) = with(BatchStatus::Abandoned) {
        return Ok(Some(ClaimError::Abandoned {
            execution: *execution,
        }));
    }
    if let Some((execution, _)) = with(BatchStatus::Unknown) {
        return Ok(Some(ClaimError::UnknownStatus {
            execution: *execution,
        }));
    }
    let earlier = newest.filter(|_| !restartable);
    Ok(earlier.map(|earlier| ClaimError::NotRestartable {
        execution: earlier.id,
    }))
}

/// Returns whether the request may continue this execution. Recovery continues only executions that are still dead: an operator may
/// have stopped this one meanwhile.
pub(crate) fn may_continue(
    request: &ClaimRequest<'_>,
    id: JobExecutionId,
    newest: Option<&JobExecution>,
) -> bool {
    let is_dead = newest.is_some_and(|newest| {
        newest.id == id && matches!(newest.status, BatchStatus::Starting | BatchStatus::Started)
    });
    request.crash_limit.is_none() || is_dead
}

/// Returns the outcome of abandoning an execution in this status, of an instance that does not run.
pub(crate) fn abandoned(status: BatchStatus, is_complete: bool) -> AbandonOutcome {
    if is_complete && status != BatchStatus::Completed {
        AbandonOutcome::Complete
    } else {
        AbandonOutcome::Abandoned
    }
}

/// Returns the message of an execution or step execution whose status was UNKNOWN, and that an operator has accepted as FAILED.
pub(crate) fn accepted_message(reason: &str, message: &str) -> String {
    let accepted = format!("its status was UNKNOWN, and is accepted as FAILED: {reason}");
    match message.is_empty() {
        true => accepted,
        false => format!("{accepted}\n{message}"),
    }
}

/// Returns how the last execution of an instance ended; nothing if an execution is open or in an unknown status, or if there
/// is none. The executions are in the order of their ids.
pub(crate) fn last_of<T: Copy>(
    executions: impl Iterator<Item = (JobExecutionId, Option<BatchStatus>, Option<T>)>,
) -> (Option<BatchStatus>, Option<T>, JobExecutionId) {
    let mut last = (None, None, JobExecutionId(0));
    for (id, status, ended) in executions {
        if !status.is_some_and(BatchStatus::is_final) {
            return (None, None, JobExecutionId(0));
        }
        last = (status, ended, id);
    }
    last
}

/// Returns the end of an execution in this status whose owner is dead; `None` if it had ended before.
pub(crate) fn closing(status: BatchStatus, owner: &str) -> Option<Ending> {
    Some(match status.after_crash()? {
        BatchStatus::Stopped => Ending::of(BatchStatus::Stopped, format!("{STOPPED_DEAD} (owner {owner})")),
        _ => crashed(owner),
    })
}

/// Returns the end of an execution whose runtime died.
pub(crate) fn crashed(owner: &str) -> Ending {
    let message = format!("the process that ran it died or lost its lease (owner {owner})");
    Ending::new(BatchStatus::Failed, CRASHED.to_owned(), message)
}

/// Returns whether an execution or step execution with this exit status and message was closed because its owner was dead.
pub(crate) fn has_closed(exit_status: &str, message: &str) -> bool {
    exit_status == CRASHED || message.starts_with(STOPPED_DEAD)
}

/// Adds the cause of death to the message of an end, and why the execution cannot be resumed.
pub(crate) fn explained(mut ending: Ending, exit: Option<&str>, cause: Option<&str>) -> Ending {
    if let Some(exit) = exit.filter(|exit| !exit.is_empty()) {
        ending.message += &format!(": {exit}");
    }
    if let Some(cause) = cause {
        ending.message += &format!("; it cannot be resumed: {cause}");
    }
    ending
}

/// Returns the error that a claim records, together with what it has closed: the instance has crashed too often without progress, or
/// what it would resume from is `unreadable`.
pub(crate) fn recorded_rejection(
    request: &ClaimRequest<'_>,
    newest: Option<&JobExecution>,
    crashes: i64,
    unreadable: Option<RepositoryError>,
) -> Option<ClaimError> {
    // A limit of 0 rejects no takeover.
    let is_over = |limit| limit > 0 && crashes > i64::from(limit);
    match newest {
        Some(newest) if request.crash_limit.is_some_and(is_over) => Some(ClaimError::CrashLoop {
            execution: newest.id,
            crashes,
        }),
        _ => unreadable.map(ClaimError::Repository),
    }
}

/// Makes a job execution STARTED. The clock may have been set back since it was created.
pub(crate) fn begin_job(execution: &mut JobExecution, now: Timestamp) {
    let now = now.max(execution.created);
    execution.version += 1;
    execution.status = BatchStatus::Started;
    execution.started = Some(now);
    execution.last_updated = now;
}

/// Ends a job execution. The clock may have been set back meanwhile, or the clock of a dead owner have been ahead.
pub(crate) fn end_job(execution: &mut JobExecution, ending: &Ending, now: Timestamp, max_message: usize) {
    let now = now.max(execution.started.unwrap_or(execution.created));
    execution.version += 1;
    execution.status = ending.status;
    execution.exit_status.clone_from(&ending.exit_status);
    execution.exit_message = stored_message(&ending.message, max_message);
    execution.ended = Some(now);
    execution.last_updated = now;
}

/// Makes a step execution STARTED, not before it was created.
pub(crate) fn begin_step(step: &mut StepExecution, now: Timestamp) {
    step.version += 1;
    step.status = BatchStatus::Started;
    step.started = now.max(step.started);
    step.last_updated = step.started;
}

/// Returns when a step execution ended: not before it started, because the clock of a dead owner may have been ahead. One that waits and has
/// committed nothing, such as a partition without a thread, has taken no time.
pub(crate) fn end_time<T: Ord>(status: BatchStatus, commits: i64, started: T, now: T) -> T {
    match status {
        BatchStatus::Starting if commits == 0 => started,
        _ => now.max(started),
    }
}

/// Ends a step execution.
pub(crate) fn end_step(step: &mut StepExecution, ending: &Ending, now: Timestamp, max_message: usize) {
    let now = end_time(step.status, step.counters.commits, step.started, now);
    step.version += 1;
    step.status = ending.status;
    step.exit_status.clone_from(&ending.exit_status);
    step.exit_message = stored_message(&ending.message, max_message);
    step.ended = Some(now);
    step.last_updated = now;
}

/// Returns whether a runner whose row has changed adopts the change: it is a stop request, and the runner holds its lease. Otherwise another
/// runner has taken the execution over.
// Spec: REPO-17
pub(crate) fn is_stop_request(status: BatchStatus, is_held: bool) -> bool {
    status == BatchStatus::Stopping && is_held
}

/// What a worker does with a launch that it has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenAs {
    /// It runs the launch.
    New,
    /// It runs the launch. The execution was stopped for a hand-over and is forgotten: if this worker dies, too, the launch must not count as
    /// ended.
    HandedOver,
    /// The job has ended, and its worker could not record that.
    Ended,
}

/// Decides what becomes of a launch, from its phase before and the status of its job execution. A drained worker has stopped an execution
/// for another worker, and queued its launch.
pub(crate) fn taken_as(was_queued: bool, status: Option<BatchStatus>, has_execution: bool) -> TakenAs {
    match status.filter(|status| status.is_final()) {
        Some(status) if !was_queued || status != BatchStatus::Stopped => TakenAs::Ended,
        _ if was_queued && has_execution => TakenAs::HandedOver,
        _ => TakenAs::New,
    }
}

/// Returns why a launch is not withdrawn; `None` if it can be. `execution` is its job execution with the status.
pub(crate) fn not_withdrawn(
    phase: Option<LaunchPhase>,
    execution: Option<(JobExecutionId, BatchStatus)>,
    in_doubt: bool,
) -> Option<WithdrawOutcome> {
    match (phase, execution) {
        (Some(LaunchPhase::Taken), Some((id, status))) if !status.is_final() => {
            Some(WithdrawOutcome::Runs(id))
        }
        // The execution has ended, and its worker has not recorded the end of the launch yet.
        (Some(LaunchPhase::Taken), Some(_)) => Some(WithdrawOutcome::NotRunning),
        (Some(LaunchPhase::Queued | LaunchPhase::Taken), _) => None,
        // By an earlier attempt of this call.
        (Some(LaunchPhase::Withdrawn), _) if in_doubt => Some(WithdrawOutcome::Withdrawn),
        _ => Some(WithdrawOutcome::NotRunning),
    }
}

/// Returns a step that has committed items, has not completed and is no longer in the job, with the number of its items. It may have been
/// renamed, and would then run from the beginning. `executions` are the step executions of an instance, oldest first; `job` are the current
/// names of the job's step executions, without the numbers of partitions.
// Spec: LOSS-02
pub(crate) fn removed_step(executions: &[StepExecution], job: &BTreeSet<String>) -> Option<(String, i64)> {
    let mut latest: BTreeMap<&str, (BatchStatus, i64)> = BTreeMap::new();
    for step in executions {
        let (status, writes) = latest.entry(&step.step_name).or_insert((step.status, 0));
        // What a complete run has written needs no resume, even if the step has run again since.
        if *status == BatchStatus::Completed {
            *writes = 0;
        }
        *status = step.status;
        *writes += step.counters.writes;
    }
    let mut removed: BTreeMap<&str, (bool, i64)> = BTreeMap::new();
    for (name, (status, writes)) in latest {
        if job.contains(&without_numbers(name)) {
            continue;
        }
        // If the whole element was removed or renamed, its complete partitions would run again, too.
        let id = match name.split_once(':') {
            Some((element, _)) if !job.contains(&format!("{element}:")) => element,
            _ => name,
        };
        let (unfinished, all) = removed.entry(id).or_default();
        *unfinished |= !matches!(status, BatchStatus::Completed | BatchStatus::Abandoned);
        *all += writes;
    }
    let lost = |(name, (unfinished, writes)): (&str, (bool, i64))| {
        (unfinished && writes > 0).then(|| (name.to_owned(), writes))
    };
    removed.into_iter().find_map(lost)
}

/// Returns the name of a step execution without the numbers of its partitions: `flow:/load:` for `flow:2/load:1`.
fn without_numbers(name: &str) -> String {
    let mut parts = name.split(':');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        shown + ":" + part.find('/').map_or("", |at| &part[at..])
    })
}

/// An execution of a step, as the history of the step counts it.
pub(crate) struct StepRun {
    pub(crate) step: StepExecutionId,
    pub(crate) job: JobExecutionId,
    pub(crate) is_complete: bool,
    pub(crate) counters: StepCounters,
}

/// Returns the history of a step: `last` is its latest execution in job executions from `since` on, `runs` are all its executions,
/// oldest first.
pub(crate) fn step_history<E>(
    last: Option<StepExecution>,
    runs: &[StepRun],
    since: Option<i64>,
    mut state_of: impl FnMut(StepExecutionId) -> Result<StepState, E>,
) -> Result<StepHistory, E> {
    let starts = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    let Some(last) = last else {
        return Ok(StepHistory {
            starts,
            ..StepHistory::default()
        });
    };
    let state = state_of(last.id)?;
    Ok(StepHistory {
        last: Some(last),
        before: match state.has_position() {
            true => counters_before(runs, since),
            false => StepCounters::default(),
        },
        commits: own_commits(runs, since, &mut state_of)?,
        committed_by_other_program: state.of_other_program && has_commits_of_other_program(runs, state_of)?,
        state,
        starts,
    })
}

/// Returns the executions since the step last completed, newest first.
fn since_complete(runs: &[StepRun], since: Option<i64>) -> impl Iterator<Item = &StepRun> {
    runs.iter()
        .rev()
        .take_while(move |run| !run.is_complete && since.is_none_or(|since| run.job.0 >= since))
}

/// Returns the number of chunks committed since the step last completed; 0 if another program committed the latest: its commits
/// leave no checkpoint of this runtime.
fn own_commits<E>(
    runs: &[StepRun],
    since: Option<i64>,
    state_of: &mut impl FnMut(StepExecutionId) -> Result<StepState, E>,
) -> Result<i64, E> {
    let mut with_commits = since_complete(runs, since).filter(|run| run.counters.commits > 0);
    let Some(latest) = with_commits.next() else {
        return Ok(0);
    };
    if state_of(latest.step)?.of_other_program {
        return Ok(0);
    }
    let earlier: i64 = with_commits.map(|run| run.counters.commits).sum();
    Ok(latest.counters.commits + earlier)
}

/// Returns the counters of the executions before the latest one, since the step last completed before it.
fn counters_before(runs: &[StepRun], since: Option<i64>) -> StepCounters {
    let Some((_, before)) = runs.split_last() else {
        return StepCounters::default();
    };
    since_complete(before, since).fold(StepCounters::default(), |sum, run| sum.plus(run.counters))
}

/// Returns whether the latest executions of a step were run by another program and one of them has commits.
fn has_commits_of_other_program<E>(
    runs: &[StepRun],
    mut state_of: impl FnMut(StepExecutionId) -> Result<StepState, E>,
) -> Result<bool, E> {
    for run in runs.iter().rev() {
        if !state_of(run.step)?.of_other_program {
            return Ok(false);
        }
        if run.counters.commits > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, SystemClock};

    // Spec: LOSS-02
    #[test]
    fn a_step_that_was_removed_is_found() {
        use BatchStatus::{Abandoned, Completed, Failed};
        let find = |executions: &[(&str, BatchStatus, i64)], job: &[&str]| {
            let now = SystemClock.now();
            let row = |(name, status, writes): &(&str, BatchStatus, i64)| {
                let mut step = new_step(1, JobExecutionId(1), name, *status, now);
                step.counters.writes = *writes;
                step
            };
            let executions: Vec<_> = executions.iter().map(row).collect();
            removed_step(&executions, &job.iter().map(|name| (*name).to_owned()).collect())
        };
        let found = |name: &str, writes| Some((name.to_owned(), writes));
        let load = [("load", Failed, 2), ("load", Failed, 1)];
        assert_eq!(find(&load, &["lode"]), found("load", 3));
        assert_eq!(find(&load, &["load"]), None);
        for (status, writes) in [(Completed, 3), (Abandoned, 3), (Failed, 0)] {
            assert_eq!(find(&[("load", status, writes)], &["lode"]), None, "{status}");
        }
        // A complete run of a step that runs again does not count.
        assert_eq!(find(&[("load", Completed, 5), ("load", Failed, 0)], &[]), None);
        // A complete partition would run again, under another name.
        let parts = [
            ("load", Failed, 0),
            ("load:1", Completed, 5),
            ("load:2", Failed, 0),
        ];
        assert_eq!(find(&parts, &["lode", "lode:"]), found("load", 5));
        assert_eq!(find(&parts, &["load"]), found("load", 5));
        assert_eq!(find(&parts, &["load", "load:"]), None);
        let flows = [
            ("f:1", Completed, 0),
            ("f:1/s", Completed, 5),
            ("f:2", Failed, 0),
            ("f:2/s", Failed, 1),
        ];
        assert_eq!(find(&flows, &["g:", "g:/s"]), found("f", 6));
        assert_eq!(find(&flows, &["f:", "f:/t"]), found("f:2/s", 1));
        assert_eq!(find(&flows, &["f:", "f:/s"]), None);
    }
}
