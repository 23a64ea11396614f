//! The workers, and the launches that wait for one.

use askama::Template;
use axum::response::Response;
use batch_runtime::operator::{LaunchInfo, LaunchStatus, WorkerInfo};
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, Timestamp};

use super::{Layout, html, now};
use crate::app::RequestContext;
use crate::problem::Problem;
use crate::view::{Pill, Time, process};

/// The number of launches that are listed.
const MAX_LISTED: usize = 100;

#[derive(Template)]
#[template(path = "workers.html")]
struct Page {
    layout: Layout,
    workers: Vec<WorkerRow>,
    launches: Vec<LaunchRow>,
}

struct WorkerRow {
    /// Its host and process.
    process: String,
    name: String,
    queue: String,
    slots: u32,
    busy: usize,
    version: String,
    started: Time,
    state: Pill,
    executions: Vec<JobExecutionId>,
}

struct LaunchRow {
    id: String,
    job: String,
    queue: String,
    state: Pill,
    execution: Option<JobExecutionId>,
    worker: String,
    submitted: Time,
    message: String,
}

impl WorkerRow {
    fn new(worker: WorkerInfo, now: Timestamp) -> Self {
        let (class, text) = match (worker.is_alive, worker.is_draining) {
            (false, _) => ("dead", "DEAD"),
            (true, true) => ("stopping", "DRAINING"),
            (true, false) => ("completed", "ALIVE"),
        };
        let mut executions: Vec<JobExecutionId> = worker.partitions.iter().map(|(job, _)| *job).collect();
        executions.sort_unstable();
        executions.dedup();
        Self {
            busy: worker.partitions.len(),
            executions,
            process: process(&worker.name),
            name: worker.name,
            queue: worker.queue,
            slots: worker.slots,
            version: worker.version,
            started: Time::new(worker.started, now),
            state: Pill { class, text },
        }
    }
}

impl LaunchRow {
    fn new(launch: LaunchInfo, now: Timestamp) -> Self {
        let (class, text) = match launch.status {
            LaunchStatus::Queued => ("starting", "QUEUED"),
            LaunchStatus::Running => ("running", "RUNNING"),
            LaunchStatus::Ended(status) => (Pill::of(status).class, status.as_str()),
            LaunchStatus::Rejected => ("failed", "REJECTED"),
            LaunchStatus::Withdrawn => ("stopped", "WITHDRAWN"),
            _ => ("abandoned", "PURGED"),
        };
        Self {
            id: launch.id.to_string(),
            job: launch.job,
            queue: launch.queue,
            state: Pill { class, text },
            execution: launch.execution,
            worker: launch.worker.as_deref().map(process).unwrap_or_default(),
            submitted: Time::new(launch.submitted, now),
            message: launch.message,
        }
    }
}

pub(super) async fn show(context: RequestContext) -> Result<Response, Problem> {
    let read =
        |operator: &JobOperator| Ok::<_, JobOperatorError>((operator.workers()?, operator.launches()?));
    let (workers, launches) = context.app.operator.run(read).await?;
    let now = now();
    Ok(html(&Page {
        layout: Layout::new(&context, "workers", "Workers").refreshing(true),
        workers: workers
            .into_iter()
            .map(|worker| WorkerRow::new(worker, now))
            .collect(),
        launches: launches
            .into_iter()
            .rev()
            .take(MAX_LISTED)
            .map(|launch| LaunchRow::new(launch, now))
            .collect(),
    }))
}
