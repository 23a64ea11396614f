//! `recover`: resumes executions whose process is dead.

use std::process::ExitCode;

use batch_runtime::execution::JobExecution;
use batch_runtime::operator::Recovery;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::execution_id;
use crate::error::CliError;
use crate::print::{errln, out, outln};
use crate::progress;
use crate::session::{Outcome, Session, exit_code};

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
    /// Makes an execution whose status is UNKNOWN, because Spring Batch could not record its end, FAILED, after you have checked what it has
    /// written; its instance can then be launched again
    #[arg(long, value_name = "ID", conflicts_with_all = ["dry_run", "declare_dead"], requires = "reason", value_parser = execution_id)]
    accept_unknown: Option<JobExecutionId>,
    /// Why it may be resumed, for the message of the execution and the audit log
    #[arg(long, value_name = "TEXT", requires = "accept_unknown", value_parser = NonEmptyStringValueParser::new())]
    reason: Option<String>,
}

impl Recover {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        if let Some(id) = self.declare_dead {
            session.open()?.declare_dead(id)?;
            outln!("execution {id} is closed: its instance can be resumed");
            return Ok(ExitCode::SUCCESS);
        }
        if let Some((id, reason)) = self.accept_unknown.zip(self.reason) {
            session.open()?.accept_unknown(id, &reason)?;
            #[cfg(feature = "console")]
            crate::console::record(
                &session.settings.console,
                &format!("accept-unknown execution {id}: {reason}"),
            );
            outln!("the unknown end of execution {id} is accepted as FAILED: its instance can be resumed");
            return Ok(ExitCode::SUCCESS);
        }
        if self.dry_run {
            let dead = session.open_to_read()?.dead_executions()?;
            for execution in &dead {
                outln!("{} {}, process dead", name(execution), execution.status);
            }
            print_if_none(dead.is_empty());
            return Ok(ExitCode::SUCCESS);
        }
        recover(session)
    }
}

/// Fails if an execution is not resumed, or does not end COMPLETED.
fn recover(session: &mut Session) -> Outcome {
    let mut shutdown = session.listen()?;
    let operator = session.open()?;
    let (resumed, mut succeeded) = resume(&operator)?;
    let interval = session.settings.progress_interval;
    for id in &resumed {
        match progress::watch(&operator, *id, &resumed, interval, &mut shutdown) {
            Ok(Some(ended)) => {
                outln!("{} {}", ended.name(), ended.status);
                succeeded &= ended.status == BatchStatus::Completed;
            }
            Ok(None) => return Ok(ExitCode::FAILURE),
            Err(error) => {
                succeeded = false;
                errln!("error: {error}");
            }
        }
    }
    Ok(exit_code(succeeded))
}

/// Resumes all dead executions. Returns the new ones, and whether none was rejected.
fn resume(operator: &JobOperator) -> Result<(Vec<JobExecutionId>, bool), CliError> {
    let all = operator.recover()?;
    print_if_none(all.is_empty());
    let (mut resumed, mut succeeded) = (Vec::new(), true);
    for recovered in all {
        let name = name(&recovered.execution);
        match recovered.recovery {
            Recovery::Restarted(id) => {
                outln!("{name} is resumed as execution {id}");
                resumed.push(id);
            }
            Recovery::Stopped => outln!("{name} was requested to stop, and is closed STOPPED"),
            Recovery::Failed(error) => {
                succeeded = false;
                errln!("error: {name} is not resumed: {error}");
            }
            _ => outln!("{name} was taken over by another process"),
        }
    }
    Ok((resumed, succeeded))
}

fn print_if_none(is_none: bool) {
    if is_none {
        out("no execution is dead");
    }
}

fn name(execution: &JobExecution) -> String {
    format!("execution {} of `{}`", execution.id, execution.job_name)
}
