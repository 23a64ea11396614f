//! `executions`: executions of all jobs.

use std::process::ExitCode;

use batch_runtime::execution::JobExecution;
use batch_runtime::{BatchStatus, JobOperator, JobOperatorError, Timestamp, repository::ExecutionFilter};
use clap::Args;

use super::count;
use crate::json;
use crate::print::out;
use crate::session::{Outcome, Session};
use crate::tables::{Table, live_status, or_dash, shortened};

/// Lists executions of all jobs, newest first
#[derive(Args, Debug)]
pub(crate) struct Executions {
    /// Only executions of this job
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only executions in this status; may be given several times
    #[arg(long, value_name = "STATUS", ignore_case = true, value_parser = status)]
    status: Vec<BatchStatus>,
    /// Only executions created at or after this time, such as 2026-11-20 or 2026-11-20T13:45:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
    /// Only executions created before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    /// Maximum number of executions
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = count)]
    limit: u32,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Executions {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let operator = session.open_to_read()?;
        let executions = operator.find_executions(&ExecutionFilter {
            job: self.job,
            statuses: self.status,
            since: self.since,
            until: self.until,
            limit: Some(self.limit),
            ..ExecutionFilter::default()
        })?;
        if executions.is_empty() && !self.json {
            out("no matching executions");
        }
        print_executions(&operator, &executions, true, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints executions as a table, optionally with the name of the job, or as JSON.
pub(super) fn print_executions(
    operator: &JobOperator,
    executions: &[JobExecution],
    with_job: bool,
    as_json: bool,
) -> Result<(), JobOperatorError> {
    let states = operator.execution_states(executions)?;
    let with_state = || {
        executions
            .iter()
            .filter_map(|one| Some((one, states.get(&one.id)?)))
    };
    if as_json {
        json::print(
            &with_state()
                .map(|(one, state)| json::job_execution(one, state))
                .collect(),
        );
        return Ok(());
    }
    let mut head = vec!["EXECUTION", "INSTANCE"];
    head.extend(with_job.then_some("JOB"));
    head.extend(["STATUS", "EXIT STATUS", "CREATED", "ENDED"]);
    let mut table = Table::new(&head);
    for (execution, state) in with_state() {
        let mut row = vec![execution.id.to_string(), execution.instance_id.to_string()];
        row.extend(with_job.then(|| execution.job_name.clone()));
        row.extend([
            live_status(execution, state),
            shortened(&execution.exit_status),
            execution.created.to_string(),
            or_dash(execution.ended),
        ]);
        table.row(row);
    }
    table.print();
    Ok(())
}

fn status(text: &str) -> Result<BatchStatus, String> {
    let mut all = BatchStatus::ALL.iter();
    let found = all.find(|status| status.as_str().eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| {
        let names = BatchStatus::ALL.map(BatchStatus::as_str);
        format!("expected one of {}", names.join(", "))
    })
}
