//! Executions as rows of tables.

use std::collections::BTreeMap;

use batch_runtime::execution::{JobExecution, StepCounters, StepExecution};
use batch_runtime::operator::ExecutionState;
use batch_runtime::time::elapsed;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError, Timestamp};

use super::progress::Share;
use super::{Count, Pill, Time, encoded, rate};

/// A job execution in a list.
#[derive(Clone)]
pub(crate) struct ExecutionRow {
    pub(crate) id: JobExecutionId,
    pub(crate) instance: i64,
    pub(crate) job: String,
    /// The job as part of a URL.
    pub(crate) job_path: String,
    pub(crate) pill: Pill,
    /// The exit status, if it differs from the batch status.
    pub(crate) exit_status: Option<String>,
    pub(crate) created: Time,
    pub(crate) took: String,
    pub(crate) written: Count,
    pub(crate) skipped: Count,
    /// The items per second that the running step reads.
    pub(crate) rate: Option<Count>,
    /// The step that runs, or ran last.
    pub(crate) step: String,
    /// How much of that step is done, if that is known.
    pub(crate) share: Option<Share>,
    /// Anything else that is worth knowing at a glance.
    pub(crate) note: String,
    /// The first line of the error.
    pub(crate) error: String,
    pub(crate) is_open: bool,
    pub(crate) is_foreign: bool,
    pub(crate) millis: u64,
}

/// The longest exit status or error in a table, in characters.
const LONGEST: usize = 160;

impl ExecutionRow {
    fn new(
        execution: &JobExecution,
        state: Option<&ExecutionState>,
        steps: &[StepExecution],
        counters: StepCounters,
        now: Timestamp,
    ) -> Self {
        let begin = execution.started.unwrap_or(execution.created);
        let is_open = !execution.status.is_final();
        let is_dead = state.is_some_and(|state| state.is_dead(execution.status));
        let runs = is_open && !is_dead;
        // Steps are updated at each commit, the job only when it starts and ends.
        let updates = steps.iter().map(|step| step.last_updated);
        let updated = updates.fold(execution.last_updated, Ord::max);
        let end = execution.ended.unwrap_or(if runs { now } else { updated });
        let millis = end.millis_since(begin);
        let current = steps.iter().rev().find(|step| !step.status.is_final());
        let current = current.filter(|_| runs);
        let is_named = execution.exit_status != execution.status.as_str() && execution.status.is_final();
        Self {
            id: execution.id,
            instance: execution.instance_id.0,
            job: execution.job_name.clone(),
            job_path: encoded(&execution.job_name),
            pill: pill(execution.status, state),
            exit_status: is_named.then(|| truncated(&execution.exit_status)),
            created: Time::new(execution.created, now),
            took: elapsed(millis),
            written: Count(counters.writes),
            skipped: Count(counters.skips()),
            rate: current.and_then(|step| rate(step.counters.reads, now.millis_since(step.started))),
            step: current
                .or(steps.last())
                .map(|step| step.step_name.clone())
                .unwrap_or_default(),
            share: None,
            note: state.and_then(|state| note(execution, state)).unwrap_or_default(),
            error: truncated(execution.exit_message.lines().next().unwrap_or_default()),
            is_open,
            is_foreign: state.is_some_and(|state| state.is_of_other_program),
            millis,
        }
    }
}

/// Reads what a list of executions shows, with a constant number of statements.
pub(crate) fn rows(
    operator: &JobOperator,
    executions: &[JobExecution],
    now: Timestamp,
) -> Result<Vec<ExecutionRow>, JobOperatorError> {
    let ids: Vec<JobExecutionId> = executions.iter().map(|execution| execution.id).collect();
    let states = operator.execution_states(executions)?;
    let steps: BTreeMap<_, Vec<StepExecution>> = operator.steps_of(&ids)?;
    let counters = operator.counters_of(&ids)?;
    let rows = executions.iter().map(|execution| {
        let steps = steps.get(&execution.id).map_or(&[][..], Vec::as_slice);
        let counters = counters.get(&execution.id).copied().unwrap_or_default();
        let mut row = ExecutionRow::new(execution, states.get(&execution.id), steps, counters, now);
        let progress = operator.progress(row.id).filter(|_| row.is_open);
        row.share = progress.and_then(|progress| Share::of(&progress, &row.step));
        row
    });
    Ok(rows.collect())
}

/// Returns the sums of the counters of steps.
pub(crate) fn sum(steps: &[StepExecution]) -> StepCounters {
    steps
        .iter()
        .fold(StepCounters::default(), |sum, step| sum.plus(step.counters))
}

/// Returns the status of an execution with what is known of its process.
pub(crate) fn pill(status: BatchStatus, state: Option<&ExecutionState>) -> Pill {
    match state {
        Some(state) if state.waits_for.is_some() => Pill::WAITING,
        Some(state) if state.is_dead(status) => Pill::DEAD,
        _ => Pill::of(status),
    }
}

fn note(execution: &JobExecution, state: &ExecutionState) -> Option<String> {
    if let Some(before) = state.waits_for {
        return Some(format!("waits for execution {before}"));
    }
    if state.is_dead(execution.status) {
        return Some("its process is dead; recover or restart it".into());
    }
    state
        .is_of_other_program
        .then(|| "started by another program".into())
}

/// Returns a text on one line, cut to what a table has room for.
pub(crate) fn truncated(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The number of partitions that a page shows.
pub(crate) const MOST_PARTITIONS: usize = 200;

/// Returns the steps with at most `most` partitions, and the number of partitions left out. If any are, failed and running ones come
/// first.
pub(crate) fn without_surplus(steps: &[StepExecution], most: usize) -> (Vec<StepExecution>, usize) {
    // `load:1` of this runtime, and `load:partition0` of Spring Batch.
    let (mut partitions, mut shown): (Vec<_>, Vec<_>) =
        steps.iter().partition(|step| step.step_name.contains(':'));
    let surplus = partitions.len().saturating_sub(most);
    if surplus == 0 {
        return (steps.to_vec(), 0);
    }
    partitions.sort_by_key(|step| match step.status {
        BatchStatus::Failed | BatchStatus::Unknown => 0,
        status if !status.is_final() => 1,
        _ => 2,
    });
    shown.extend(partitions.into_iter().take(most));
    (shown.into_iter().cloned().collect(), surplus)
}

/// A step execution in a table.
pub(crate) struct StepRow {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) pill: Pill,
    pub(crate) exit_status: Option<String>,
    pub(crate) read: Count,
    pub(crate) filtered: Count,
    pub(crate) written: Count,
    pub(crate) skipped: Count,
    pub(crate) commits: Count,
    pub(crate) rollbacks: Count,
    pub(crate) took: String,
    pub(crate) rate: Option<Count>,
    /// How much of it is done, if that is known.
    pub(crate) share: Option<Share>,
    pub(crate) is_of_partition: bool,
    /// The time since the last commit of a step that runs, empty before the first: one that is stuck commits no more.
    pub(crate) last_commit: String,
    /// The process that runs a partition, or has run it, by its host and number.
    pub(crate) worker: String,
}

impl StepRow {
    pub(crate) fn new(step: &StepExecution, is_dead: bool, now: Timestamp) -> Self {
        let is_open = !step.status.is_final();
        let end = step.ended.unwrap_or(if is_open && !is_dead {
            now
        } else {
            step.last_updated
        });
        let millis = end.millis_since(step.started);
        let counters = step.counters;
        let is_named = step.exit_status != step.status.as_str() && step.status.is_final();
        Self {
            id: step.id.0,
            name: step.step_name.clone(),
            pill: match is_open && is_dead {
                true => Pill::DEAD,
                false => Pill::of(step.status),
            },
            exit_status: is_named.then(|| truncated(&step.exit_status)),
            read: Count(counters.reads),
            filtered: Count(counters.filters),
            written: Count(counters.writes),
            skipped: Count(counters.skips()),
            commits: Count(counters.commits),
            rollbacks: Count(counters.rollbacks),
            took: elapsed(millis),
            rate: rate(counters.reads, millis),
            share: None,
            is_of_partition: step.is_of_partition(),
            last_commit: match is_open && !is_dead && counters.commits > 0 {
                true => Time::new(step.last_updated, now).ago,
                false => String::new(),
            },
            worker: String::new(),
        }
    }
}
