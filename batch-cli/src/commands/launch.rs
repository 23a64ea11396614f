//! `launch`: runs the instance that a job and its parameters identify.

use std::io::stdout;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use batch_runtime::operator::{LaunchInfo, LaunchStatus, StartError};
use batch_runtime::{
    BatchRuntimeBuilder, BatchStatus, JobExecutionId, JobOperator, JobOperatorError, JobParameters, LaunchId,
};
use clap::Args;
use serde_json::json as value;

use super::{queue, show};
use crate::commands::launches::{has_worker, no_worker};
use crate::error::{CliError, LATER};
use crate::follow::{Ending, Resume, follow};
use crate::json;
use crate::parameters::Parameters;
use crate::patience::waiting_for;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session};
use crate::signals::Shutdown;

/// The interval between polls for the end of an execution of another process.
const POLL: Duration = Duration::from_millis(200);

/// Runs the instance of a job with these parameters: starts it, or resumes it where it was interrupted
#[derive(Args, Debug)]
#[command(
    after_help = "The same command again resumes what a crash or a kill -9 interrupted. It rejects an instance that is \
                  complete (exit code 10) or running (11).\n\n\
                  With --remote a worker runs it, and this command prints the id of the launch and ends: `launches` shows what \
                  becomes of it, and `stop` stops it. With --wait, too, it ends like the job.\n\n\
                  Examples:\n  launch nightly day=2026-11-20 -note=again\n  \
                  launch nightly 'day(date)=2026-11-20' 'password(secret)=env:DB_PASSWORD'"
)]
pub(crate) struct Launch {
    /// Id of the job
    job: String,
    #[command(flatten)]
    parameters: Parameters,
    /// Ends with exit code 0 if the instance is complete
    #[arg(long)]
    complete_ok: bool,
    /// Waits while the instance is running, or another execution of a job that runs one at a time
    #[arg(long)]
    wait: bool,
    /// Prints JSON: a line with the ids first, and one like `show --json` at the end
    #[arg(long)]
    json: bool,
    /// Queues it for the workers of this repository
    #[arg(long)]
    remote: bool,
    /// The queue of the workers that may run it
    #[arg(long, requires = "remote", default_value = "default", value_parser = queue)]
    queue: String,
}

impl Launch {
    pub(crate) fn run(mut self, session: &mut Session) -> Outcome {
        session.check_properties(&self.job)?;
        let parameters = std::mem::take(&mut self.parameters).into_parameters()?;
        let check = |runtime: BatchRuntimeBuilder| runtime.check_start(&self.job, parameters.clone());
        if self.remote {
            session.connect_dispatch()?;
            let operator = session.create_for(check)?;
            return self.run_remote(session, &operator, &parameters);
        }
        let mut shutdown = session.listen()?;
        let operator = session.create_for(check)?;
        let launch = || {
            // Holds back the output of the job until the ids are printed; unless reading them may wait for the job.
            let held = (self.json && !session.readers_wait()).then(|| stdout().lock());
            let execution = waiting_for(session.repository(), || {
                operator.launch(&self.job, parameters.clone())
            })?;
            self.print_started(&operator, execution)?;
            drop(held);
            Ok(execution)
        };
        let launched = self.when_possible(&operator, self.wait.then_some(&mut shutdown), launch)?;
        match launched {
            Launched::Started(execution) => {
                let ending = match self.json {
                    true => Ending::json(Resume::ByLaunch),
                    false => Ending::text(Resume::ByLaunch),
                };
                follow(session, &operator, execution, ending, shutdown)
            }
            Launched::Not(code) => Ok(code),
        }
    }

    /// Calls `launch`. With --wait, calls it again when what it has to wait for has ended; `shutdown` ends the wait.
    // Spec: CLI-03, CLI-04
    fn when_possible<T>(
        &self,
        operator: &JobOperator,
        mut shutdown: Option<&mut Shutdown>,
        launch: impl Fn() -> Result<T, JobOperatorError>,
    ) -> Result<Launched<T>, CliError> {
        let mut announced = None;
        loop {
            let error = match launch() {
                Ok(started) => return Ok(Launched::Started(started)),
                Err(error) => error,
            };
            if let JobOperatorError::JobInstanceAlreadyComplete { execution, .. } = error
                && self.complete_ok
            {
                self.print_complete(operator, execution, &error)?;
                return Ok(Launched::Not(ExitCode::SUCCESS));
            }
            let (Some(shutdown), Some(execution)) = (&mut shutdown, running(&error)) else {
                return Err(error.into());
            };
            if announced.replace(execution) != Some(execution) {
                errln!("waiting for execution {execution}: {error}");
            }
            if !has_ended(operator, execution, shutdown)? {
                errln!("not started: the wait was interrupted");
                return Ok(Launched::Not(ExitCode::from(LATER)));
            }
        }
    }

    // Spec: CLI-05
    fn print_started(
        &self,
        operator: &JobOperator,
        execution: JobExecutionId,
    ) -> Result<(), JobOperatorError> {
        if self.json {
            let started = operator.job_execution(execution)?;
            let instance = started.map(|started| started.instance_id.0);
            json::print_line(&value!({ "job": self.job, "instance": instance, "execution": execution.0 }));
        }
        Ok(())
    }

    fn print_complete(
        &self,
        operator: &JobOperator,
        execution: JobExecutionId,
        error: &JobOperatorError,
    ) -> Result<(), CliError> {
        self.print_started(operator, execution)?;
        match operator.job_execution(execution)? {
            Some(complete) if self.json => json::print_line(&show::to_json(operator, &complete)?),
            _ => errln!("nothing to do: {error}"),
        }
        Ok(())
    }

    fn run_remote(&self, session: &Session, operator: &JobOperator, parameters: &JobParameters) -> Outcome {
        let mut shutdown = self
            .wait
            .then(|| Shutdown::listen(session.settings.shutdown_timeout));
        let launch = || operator.launch_remote(&self.job, parameters.clone(), &self.queue);
        let launch = match self.when_possible(operator, shutdown.as_mut(), launch)? {
            Launched::Started(launch) => launch,
            Launched::Not(code) => return Ok(code),
        };
        match self.json {
            true => json::print_line(&value!({ "job": self.job, "launch": launch.0 })),
            false => outln!("{launch}"),
        }
        errln!("queued for workers; `launches` shows what becomes of it");
        if !has_worker(&operator.workers()?, &self.queue) {
            errln!("note: {}", no_worker(&self.queue));
        }
        match shutdown {
            Some(mut shutdown) => self.wait_for_launch(operator, launch, &mut shutdown),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// Waits for the end of a remote launch, and ends as its execution.
    fn wait_for_launch(&self, operator: &JobOperator, id: LaunchId, shutdown: &mut Shutdown) -> Outcome {
        loop {
            if shutdown.starts() {
                errln!("the wait was interrupted; launch {id} continues, and `stop {id}` stops it");
                return Ok(ExitCode::from(LATER));
            }
            let launches = operator.launches()?;
            let launch = launches.iter().find(|launch| launch.id == id);
            match launch {
                Some(launch) if matches!(launch.status, LaunchStatus::Queued | LaunchStatus::Running) => {}
                Some(launch) => return self.end_of(operator, launch),
                None => return Err(JobOperatorError::NoSuchLaunch(id).into()),
            }
            thread::sleep(POLL);
        }
    }

    fn end_of(&self, operator: &JobOperator, launch: &LaunchInfo) -> Outcome {
        let ended = match (launch.status, launch.execution) {
            (LaunchStatus::Withdrawn, _) => {
                errln!("launch {} was stopped before a worker ran it", launch.id);
                return Ok(ExitCode::from(BatchStatus::Stopped.exit_code()));
            }
            (LaunchStatus::Ended(_), Some(execution)) => operator.job_execution(execution)?,
            _ => None,
        };
        let Some(ended) = ended else {
            let problem = match launch.message.as_str() {
                "" => "purged".to_owned(),
                message => format!("rejected: {message}"),
            };
            return Err(CliError::LaunchNotRun(launch.id, problem));
        };
        match self.json {
            true => json::print_line(&show::to_json(operator, &ended)?),
            false => errln!("{} {}", ended.name(), ended.status),
        }
        Ok(ExitCode::from(operator.exit_code(&ended)?))
    }
}

/// The result of a launch.
enum Launched<T> {
    Started(T),
    /// The command ends with this code.
    Not(ExitCode),
}

/// Returns the execution that has to end before the launch is possible.
fn running(error: &JobOperatorError) -> Option<JobExecutionId> {
    match error {
        JobOperatorError::JobExecutionAlreadyRunning { execution, .. }
        | JobOperatorError::JobStart {
            cause: StartError::OneAtATime { execution },
            ..
        } => Some(*execution),
        _ => None,
    }
}

/// Waits until an execution has ended, or its process is dead; returns `false` if a signal arrives before.
fn has_ended(
    operator: &JobOperator,
    execution: JobExecutionId,
    shutdown: &mut Shutdown,
) -> Result<bool, JobOperatorError> {
    loop {
        thread::sleep(POLL);
        if shutdown.starts() {
            return Ok(false);
        }
        match operator.job_execution(execution)? {
            Some(found) if !found.status.is_final() && operator.is_alive(execution)? => {}
            _ => return Ok(true),
        }
    }
}
