//! `recover`: resumes executions whose process is dead.

use std::process::ExitCode;

use batch_runtime::execution::JobExecution;
use batch_runtime::operator::Recovery;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator};
use clap::Args;

use super::execution_id;
use crate::error::CliError;
use crate::print::{err, out};
use crate::progress;
use crate::session::{Outcome, Session};

/// Resumes executions whose process is dead, and waits for their end
///
/// Those that were requested to stop are closed STOPPED.
#[derive(Args, Debug)]
pub(crate) struct Recover {
    /// Only lists the dead executions
    #[arg(long)]
    dry_run: bool,
    /// Closes an execution of a program that holds no lease, such as Spring Batch, whose process you know to be dead; its
    /// instance can then be launched again, by either program
    #[arg(long, value_name = "ID", conflicts_with = "dry_run", value_parser = execution_id)]
    declare_dead: Option<JobExecutionId>,
}

impl Recover {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        if let Some(id) = self.declare_dead {
            session.open()?.declare_dead(id)?;
            out(format_args!(
                "execution {id} is closed: its instance can be resumed"
            ));
            return Ok(ExitCode::SUCCESS);
        }
        if self.dry_run {
            let dead = session.open()?.dead_executions()?;
            for execution in &dead {
                out(format_args!(
                    "{} {}, process dead",
                    name(execution),
                    execution.status
                ));
            }
            return Ok(nothing_to_do(dead.is_empty()));
        }
        recover(session)
    }
}

/// Fails if an execution is not resumed, or does not end COMPLETED.
fn recover(session: &Session) -> Outcome {
    let mut shutdown = session.listen()?;
    let operator = session.open()?;
    let (resumed, mut succeeded) = resume(&operator)?;
    let interval = session.settings.progress_interval;
    for id in &resumed {
        match progress::watch(&operator, *id, &resumed, interval, &mut shutdown) {
            Ok(Some(ended)) => {
                out(format_args!("{} {}", ended.name(), ended.status));
                succeeded &= ended.status == BatchStatus::Completed;
            }
            Ok(None) => return Ok(ExitCode::FAILURE),
            Err(error) => {
                succeeded = false;
                err(format_args!("error: {error}"));
            }
        }
    }
    Ok(if succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Resumes all dead executions. Returns the new ones, and whether none was rejected.
fn resume(operator: &JobOperator) -> Result<(Vec<JobExecutionId>, bool), CliError> {
    let all = operator.recover()?;
    nothing_to_do(all.is_empty());
    let (mut resumed, mut succeeded) = (Vec::new(), true);
    for recovered in all {
        let name = name(&recovered.execution);
        match recovered.recovery {
            Recovery::Restarted(id) => {
                out(format_args!("{name} is resumed as execution {id}"));
                resumed.push(id);
            }
            Recovery::Stopped => out(format_args!(
                "{name} was requested to stop, and is closed STOPPED"
            )),
            Recovery::Failed(error) => {
                succeeded = false;
                err(format_args!("error: {name} is not resumed: {error}"));
            }
            _ => out(format_args!("{name} was taken over by another process")),
        }
    }
    Ok((resumed, succeeded))
}

fn nothing_to_do(is_so: bool) -> ExitCode {
    if is_so {
        out("no execution is dead");
    }
    ExitCode::SUCCESS
}

fn name(execution: &JobExecution) -> String {
    format!("execution {} of `{}`", execution.id, execution.job_name)
}
