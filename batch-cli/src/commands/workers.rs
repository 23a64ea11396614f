//! `workers`: lists the workers.

use std::process::ExitCode;

use batch_runtime::operator::WorkerInfo;
use clap::Args;
use serde_json::{Value, json as value};

use crate::json;
use crate::print::outln;
use crate::session::{Outcome, Session};
use crate::tables::Table;

/// Lists the workers with their slots and partitions
#[derive(Args, Debug)]
pub(crate) struct Workers {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Workers {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let workers = session.open_to_read()?.workers()?;
        if self.json {
            json::print(&workers.iter().map(to_json).collect());
            return Ok(ExitCode::SUCCESS);
        }
        if workers.is_empty() {
            outln!("no worker is registered");
        }
        let mut table = Table::new(&[
            "WORKER", "QUEUE", "SLOTS", "RUNNING", "STATUS", "VERSION", "STARTED",
        ]);
        for worker in &workers {
            table.row([
                worker.name.clone(),
                worker.queue.clone(),
                worker.slots.to_string(),
                worker.partitions.len().to_string(),
                status(worker).to_owned(),
                worker.version.clone(),
                worker.started.to_string(),
            ]);
        }
        table.print();
        Ok(ExitCode::SUCCESS)
    }
}

fn status(worker: &WorkerInfo) -> &'static str {
    match (worker.is_alive, worker.is_draining) {
        (false, _) => "dead",
        (true, true) => "draining",
        (true, false) => "ready",
    }
}

fn to_json(worker: &WorkerInfo) -> Value {
    let partitions = worker.partitions.iter();
    value!({
        "worker": worker.name,
        "queue": worker.queue,
        "slots": worker.slots,
        "status": status(worker),
        "version": worker.version,
        "started": worker.started.to_string(),
        "partitions": partitions
            .map(|(job, partition)| value!({ "execution": job.0, "stepExecution": partition.0 }))
            .collect::<Value>(),
    })
}
