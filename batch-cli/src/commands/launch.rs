//! `launch`: runs the instance that a job and its parameters identify.

use std::process::ExitCode;

use batch_runtime::BatchRuntimeBuilder;
use clap::Args;

use super::queue;
use crate::commands::launches::{has_worker, no_worker};
use crate::follow::{Resume, follow};
use crate::parameters::Parameters;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session};

/// Runs the instance of a job with these parameters: starts it, or resumes it where it was interrupted
#[derive(Args, Debug)]
#[command(
    after_help = "The same command again resumes what a crash or a kill -9 interrupted. It rejects an instance that is \
                  complete or running.\n\n\
                  With --remote a worker runs it, and this command prints the id of the launch and ends: `launches` shows what \
                  becomes of it, and `stop` stops it.\n\n\
                  Examples:\n  launch nightly day=2026-11-20 -note=again\n  \
                  launch nightly 'day(date)=2026-11-20' 'password(secret)=env:DB_PASSWORD'"
)]
pub(crate) struct Launch {
    /// Id of the job
    job: String,
    #[command(flatten)]
    parameters: Parameters,
    /// Queues it for the workers of this repository
    #[arg(long)]
    remote: bool,
    /// The queue of the workers that may run it
    #[arg(long, requires = "remote", default_value = "default", value_parser = queue)]
    queue: String,
}

impl Launch {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let parameters = self.parameters.into_parameters()?;
        let check = |runtime: BatchRuntimeBuilder| runtime.check_start(&self.job, parameters.clone());
        if self.remote {
            session.connect_dispatch()?;
            let operator = session.create_for(check)?;
            let launch = operator.launch_remote(&self.job, parameters, &self.queue)?;
            outln!("{launch}");
            errln!("queued for workers; `launches` shows what becomes of it");
            if !has_worker(&operator.workers()?, &self.queue) {
                errln!("note: {}", no_worker(&self.queue));
            }
            return Ok(ExitCode::SUCCESS);
        }
        let shutdown = session.listen()?;
        let operator = session.create_for(check)?;
        let execution = operator.launch(&self.job, parameters)?;
        follow(session, &operator, execution, Resume::ByLaunch, shutdown)
    }
}
