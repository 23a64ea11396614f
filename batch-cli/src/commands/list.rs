//! `list`: the jobs, or the executions of one.

use std::process::ExitCode;

use batch_runtime::{JobOperator, JobOperatorError};
use clap::Args;
use serde_json::{Value, json as value};

use super::executions::print_executions;
use crate::json;
use crate::print::{out, outln};
use crate::session::{Outcome, Session};
use crate::tables::{Table, live_status};

/// The number of instances of a job that are listed, the newest.
const LISTED: u32 = 100;

/// Lists the jobs with their last executions, or the executions of one job
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Id of the job
    job: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        match self.job {
            None => print_jobs(&session.open_or_empty()?, self.json)?,
            Some(job) => {
                let operator = session.open_or_empty()?;
                let mut executions = Vec::new();
                for instance in operator.job_instances(&job, 0, LISTED)? {
                    executions.extend(operator.job_executions(instance.id)?);
                }
                executions.sort_by_key(|execution| std::cmp::Reverse(execution.id));
                if executions.is_empty() && !self.json {
                    outln!("{job} has no executions");
                }
                print_executions(&operator, &executions, false, self.json)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print_jobs(operator: &JobOperator, as_json: bool) -> Result<(), JobOperatorError> {
    let latest = operator.latest_executions()?;
    let states = operator.execution_states(&latest)?;
    let mut jobs = Vec::new();
    for job in operator.job_names()? {
        let instances = operator.job_instance_count(&job)?;
        let last = latest.iter().find(|last| last.job_name == job);
        let last = last.and_then(|last| Some((last, states.get(&last.id)?)));
        jobs.push((job, instances, last));
    }
    if as_json {
        let jobs = jobs.iter().map(|(job, instances, last)| {
            let last = last.map(|(last, state)| json::job_execution(last, state));
            value!({ "job": job, "instances": instances, "lastExecution": last })
        });
        json::print(&jobs.collect::<Value>());
        return Ok(());
    }
    if jobs.is_empty() {
        out(match operator.job_path().broken.is_empty() {
            true => "no jobs: the job path and the repository are both empty",
            false => "no jobs: no file of the job path is valid; `check` shows the mistakes",
        });
    }
    let mut table = Table::new(&["JOB", "INSTANCES", "LAST EXECUTION", "STATUS", "CREATED"]);
    for (job, instances, last) in jobs {
        let [id, status, created] = match last {
            Some((last, state)) => [
                last.id.to_string(),
                live_status(last, state),
                last.created.to_string(),
            ],
            None => ["-"; 3].map(str::to_owned),
        };
        table.row([job, instances.to_string(), id, status, created]);
    }
    table.print();
    Ok(())
}
