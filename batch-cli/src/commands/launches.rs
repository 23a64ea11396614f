//! `launches`: lists the remote launches.

use std::process::ExitCode;

use batch_runtime::operator::{LaunchInfo, LaunchStatus, WorkerInfo};
use batch_runtime::{JobOperatorError, LaunchId};
use clap::Args;
use serde_json::{Value, json as value};

use crate::json;
use crate::print::outln;
use crate::session::{Outcome, Session};
use crate::tables::Table;

/// Lists remote launches; ended ones are kept for a week
#[derive(Args, Debug)]
pub(crate) struct Launches {
    /// Lists only this launch
    launch: Option<LaunchId>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Launches {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let operator = session.open_to_read()?;
        let mut launches = operator.launches()?;
        if let Some(id) = self.launch {
            launches.retain(|launch| launch.id == id);
            if launches.is_empty() {
                return Err(JobOperatorError::NoSuchLaunch(id).into());
            }
        }
        if self.json {
            json::print(&launches.iter().map(to_json).collect());
            return Ok(ExitCode::SUCCESS);
        }
        if launches.is_empty() {
            outln!("no remote launches");
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(&[
            "LAUNCH",
            "JOB",
            "QUEUE",
            "STATUS",
            "EXECUTION",
            "SUBMITTED",
            "WORKER",
        ]);
        for launch in &launches {
            table.row([
                launch.id.to_string(),
                launch.job.clone(),
                launch.queue.clone(),
                status(launch),
                launch.execution.map_or_else(|| "-".into(), |id| id.to_string()),
                launch.submitted.to_string(),
                launch.worker.clone().unwrap_or_else(|| "-".into()),
            ]);
        }
        table.print();
        for launch in launches.iter().filter(|launch| !launch.message.is_empty()) {
            outln!("launch {}: {}", launch.id, launch.message);
        }
        let workers = operator.workers()?;
        let is_queued = |launch: &&LaunchInfo| launch.status == LaunchStatus::Queued;
        for launch in launches
            .iter()
            .filter(is_queued)
            .filter(|launch| launch.message.is_empty())
        {
            if !has_worker(&workers, &launch.queue) {
                outln!("launch {}: {}", launch.id, no_worker(&launch.queue));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns whether a worker takes launches from a queue.
pub(crate) fn has_worker(workers: &[WorkerInfo], queue: &str) -> bool {
    workers
        .iter()
        .any(|worker| worker.is_alive && !worker.is_draining && worker.queue == queue)
}

pub(crate) fn no_worker(queue: &str) -> String {
    let queue = queue.escape_debug();
    format!("no worker takes from the queue `{queue}`; start one with `worker --queue {queue}`")
}

fn status(launch: &LaunchInfo) -> String {
    match launch.status {
        LaunchStatus::Queued => "queued".into(),
        LaunchStatus::Running => "running".into(),
        LaunchStatus::Ended(status) => status.to_string(),
        LaunchStatus::Rejected => "rejected".into(),
        LaunchStatus::Withdrawn => "withdrawn".into(),
        LaunchStatus::Purged => "purged".into(),
        _ => "unknown".into(),
    }
}

fn to_json(launch: &LaunchInfo) -> Value {
    value!({
        "launch": launch.id.0,
        "job": launch.job,
        "queue": launch.queue,
        "status": status(launch),
        "execution": launch.execution.map(|id| id.0),
        "worker": launch.worker,
        "submitted": launch.submitted.to_string(),
        "message": launch.message,
    })
}
