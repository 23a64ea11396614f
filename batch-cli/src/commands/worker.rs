//! `worker`: runs partitions of jobs whose coordinators are other processes.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;

use super::queue;
use crate::metrics::Health;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session};

/// The interval between polls for signals.
const POLL: Duration = Duration::from_millis(50);

/// Runs partitions of jobs that other processes have launched, and jobs launched with --remote, until a signal ends it
///
/// Those processes need the same repository, and `dispatch` set to `repository` or to the address of a server. SIGTERM drains the
/// worker: chunk steps stop at their next checkpoint, and other workers resume them.
#[derive(Args, Debug)]
pub(crate) struct Worker {
    /// Queue of the partitions, as the property `batch.dispatch.queue` names it
    #[arg(long, default_value = "default", value_parser = queue)]
    queue: String,
    /// How many partitions run at the same time, at least 1 [default: the number of processors]
    #[arg(long, value_parser = slots)]
    slots: Option<u32>,
    /// How many jobs that were launched with --remote run at the same time [default: as many as slots]
    #[arg(long)]
    jobs: Option<u32>,
}

fn slots(text: &str) -> Result<u32, &'static str> {
    match text.parse() {
        Ok(0) => Err(
            "a worker without slots would run no partition; expected a whole number, at least 1, or no `--slots` for one slot for each \
             processor",
        ),
        Ok(slots) => Ok(slots),
        Err(_) => Err("expected a whole number, at least 1"),
    }
}

impl Worker {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let health = Health::default();
        let mut shutdown = session.listen_as(&health)?;
        let runtime = session.build()?;
        let mut worker = runtime.worker().queue(&self.queue);
        if let Some(slots) = self.slots {
            worker = worker.slots(slots);
        }
        if let Some(jobs) = self.jobs {
            worker = worker.jobs(jobs);
        }
        let worker = worker.start()?;
        let work = match self.jobs {
            Some(0) => "partitions",
            _ => "partitions and remote launches",
        };
        outln!("worker for queue `{}`; waiting for {work}", self.queue);
        while !worker.has_ended() {
            thread::sleep(POLL);
            health.set(worker.health());
            if shutdown.starts() {
                errln!("draining: partitions stop at their next checkpoint, for other workers to resume");
                worker.drain();
                health.set(worker.health());
            }
            if shutdown.is_overdue() {
                let (partitions, jobs) = (worker.partitions().len(), worker.executions().len());
                errln!(
                    "error: the worker has not drained in {} s: {partitions} partitions and {jobs} jobs still run; other workers resume them \
                     when their leases expire (set a longer `shutdown-timeout` to wait longer)",
                    session.settings.shutdown_timeout.as_secs()
                );
                return Ok(ExitCode::FAILURE);
            }
        }
        worker.wait()?;
        Ok(ExitCode::SUCCESS)
    }
}
