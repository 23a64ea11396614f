//! The overview: running and failed executions, and what needs attention.

use askama::Template;
use axum::response::Response;
use batch_runtime::execution::JobExecution;
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{BatchStatus, JobInstanceId, JobOperator, JobOperatorError, Timestamp};

use super::{Layout, html, now};
use crate::app::RequestContext;
use crate::changes::OPEN;
use crate::problem::Problem;
use crate::view::rows::{ExecutionRow, rows};
use crate::view::{Count, Pill};

/// The number of executions in each table.
const MAX_LISTED: usize = 50;
/// The numbers of open and of failed executions that are read.
const MAX_OPEN: u32 = 1_000;
const MAX_FAILURES: u32 = 500;
/// The number of latest executions.
const LATEST: u32 = 8;
/// The statuses of failures.
const FAILED: [BatchStatus; 2] = [BatchStatus::Failed, BatchStatus::Unknown];
const DAY: i64 = 24 * 60 * 60 * 1_000;

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    layout: Layout,
    data: Data,
}

/// The contents of the page.
struct Data {
    running: Vec<ExecutionRow>,
    running_count: usize,
    dead: Vec<ExecutionRow>,
    dead_count: usize,
    /// The executions that have failed since yesterday, without those whose instance has been restarted since.
    failed: Vec<ExecutionRow>,
    latest: Vec<ExecutionRow>,
    /// The numbers of executions created since yesterday, by their status.
    counts: Vec<(Pill, Count)>,
    /// Yesterday, as the filter of executions takes it.
    since: String,
    broken_files: usize,
    dead_workers: usize,
    /// Notifications that could not be delivered yet.
    undelivered: usize,
}

impl Data {
    fn needs_attention(&self) -> bool {
        !self.dead.is_empty() || self.broken_files > 0 || self.dead_workers > 0 || self.undelivered > 0
    }
}

pub(super) async fn show(context: RequestContext) -> Result<Response, Problem> {
    let data = context.app.operator.run(|operator| read(operator, now())).await?;
    let layout = Layout::new(&context, "overview", "Overview").refreshing(true);
    Ok(html(&Page { layout, data }))
}

fn read(operator: &JobOperator, now: Timestamp) -> Result<Data, JobOperatorError> {
    let yesterday = Timestamp(now.0 - DAY);
    let (dead, running) = open_executions(operator)?;
    let failed = unresolved_failures(operator, yesterday)?;
    let latest = operator.find_executions(&ExecutionFilter {
        limit: Some(LATEST),
        ..ExecutionFilter::default()
    })?;
    let (dead_count, running_count) = (dead.len(), running.len());
    let listed = |executions: Vec<JobExecution>| executions.into_iter().take(MAX_LISTED);
    let tables = [dead, running, failed].map(listed);
    let lengths = tables.each_ref().map(ExactSizeIterator::len);
    let all: Vec<JobExecution> = tables.into_iter().flatten().chain(latest).collect();
    // Together, because each reading takes several statements.
    let mut rows = rows(operator, &all, now)?.into_iter();
    let [dead, running, failed] = lengths.map(|length| rows.by_ref().take(length).collect());
    let counts = operator.count_executions(&ExecutionFilter {
        since: Some(yesterday),
        ..ExecutionFilter::default()
    })?;
    let workers = operator.workers()?;
    let waiting = operator.pending_notifications()?;
    Ok(Data {
        running,
        running_count,
        dead,
        dead_count,
        failed,
        latest: rows.collect(),
        counts: by_status(&counts),
        since: day_of(yesterday),
        broken_files: operator.job_path().broken.len(),
        dead_workers: workers.iter().filter(|worker| !worker.is_alive).count(),
        undelivered: waiting.iter().filter(|one| one.attempts > 0).count(),
    })
}

/// Returns the open executions whose processes are dead, and those that run, the newest first.
fn open_executions(
    operator: &JobOperator,
) -> Result<(Vec<JobExecution>, Vec<JobExecution>), JobOperatorError> {
    let open = operator.find_executions(&ExecutionFilter {
        statuses: OPEN.to_vec(),
        limit: Some(MAX_OPEN),
        ..ExecutionFilter::default()
    })?;
    let states = operator.execution_states(&open)?;
    let is_dead = |execution: &JobExecution| {
        let state = states.get(&execution.id);
        state.is_some_and(|state| state.is_dead(execution.status))
    };
    Ok(open.into_iter().partition(is_dead))
}

/// Returns the executions that have failed since a time, the newest first, without those whose instance has been restarted since.
fn unresolved_failures(
    operator: &JobOperator,
    since: Timestamp,
) -> Result<Vec<JobExecution>, JobOperatorError> {
    let mut failed = operator.find_executions(&ExecutionFilter {
        statuses: FAILED.to_vec(),
        ended_since: Some(since),
        limit: Some(MAX_FAILURES),
        ..ExecutionFilter::default()
    })?;
    let instances: Vec<JobInstanceId> = failed.iter().map(|execution| execution.instance_id).collect();
    let latest = operator.latest_of_instances(&instances)?;
    failed.retain(|execution| latest.get(&execution.instance_id) == Some(&execution.id));
    Ok(failed)
}

/// Returns the day of a time, as the filter of executions takes it.
fn day_of(time: Timestamp) -> String {
    let text = time.to_string();
    text.get(..10).unwrap_or_default().to_owned()
}

/// Returns the numbers in the order of the statuses.
fn by_status(counts: &[(BatchStatus, u64)]) -> Vec<(Pill, Count)> {
    // Those that run are counted apart, whenever they were created.
    let of = |status: &BatchStatus| {
        let found = counts
            .iter()
            .find(|(found, _)| found == status && found.is_final());
        found.map(|(status, count)| {
            (
                Pill::of(*status),
                Count(i64::try_from(*count).unwrap_or(i64::MAX)),
            )
        })
    };
    BatchStatus::ALL.iter().filter_map(of).collect()
}
