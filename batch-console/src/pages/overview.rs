//! What runs, what has failed since yesterday, and what to look at next.

use askama::Template;
use axum::response::Response;
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{BatchStatus, JobOperator, JobOperatorError, Timestamp};

use super::{Shell, html, now};
use crate::app::Visit;
use crate::problem::Problem;
use crate::pulse::OPEN;
use crate::view::rows::{ExecutionRow, rows};
use crate::view::{Count, Pill};

/// The number of executions in each table.
const MOST: u32 = 50;
/// The number of latest executions.
const LATEST: u32 = 8;
/// The statuses of failures.
const FAILED: [BatchStatus; 2] = [BatchStatus::Failed, BatchStatus::Unknown];
const DAY: i64 = 24 * 60 * 60 * 1_000;

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    shell: Shell,
    data: Data,
}

/// What the page shows.
struct Data {
    running: Vec<ExecutionRow>,
    dead: Vec<ExecutionRow>,
    failed: Vec<ExecutionRow>,
    latest: Vec<ExecutionRow>,
    /// The numbers of executions created since yesterday, by their status.
    counts: Vec<(Pill, Count)>,
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

pub(super) async fn show(visit: Visit) -> Result<Response, Problem> {
    let data = visit.app.workbench.run(|operator| read(operator, now())).await?;
    let shell = Shell::new(&visit, "overview", "Overview").refreshing(true);
    Ok(html(&Page { shell, data }))
}

fn read(operator: &JobOperator, now: Timestamp) -> Result<Data, JobOperatorError> {
    let find = |statuses: &[BatchStatus], since, limit| {
        operator.find_executions(&ExecutionFilter {
            statuses: statuses.to_vec(),
            since,
            limit: Some(limit),
            ..ExecutionFilter::default()
        })
    };
    let yesterday = Timestamp(now.0 - DAY);
    let open = find(&OPEN, None, MOST)?;
    let failed = find(&FAILED, Some(yesterday), MOST)?;
    let latest = find(&[], None, LATEST)?;
    // Together, because each reading takes several statements.
    let rows = rows(operator, &[&open[..], &failed, &latest].concat(), now)?;
    let (open, rest) = rows.split_at(open.len());
    let (failed, latest) = rest.split_at(failed.len());
    let (dead, running) = open.iter().cloned().partition(|row| row.pill == Pill::DEAD);
    let counts = operator.count_executions(&ExecutionFilter {
        since: Some(yesterday),
        ..ExecutionFilter::default()
    })?;
    let workers = operator.workers()?;
    let waiting = operator.pending_notifications()?;
    Ok(Data {
        running,
        dead,
        failed: failed.to_vec(),
        latest: latest.to_vec(),
        counts: by_status(&counts),
        broken_files: operator.job_path().broken.len(),
        dead_workers: workers.iter().filter(|worker| !worker.is_alive).count(),
        undelivered: waiting.iter().filter(|one| one.attempts > 0).count(),
    })
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
