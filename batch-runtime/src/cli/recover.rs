//! `recover`: what was found dead, and how it went on.

use std::process::ExitCode;
use std::time::Duration;

use super::print::{err, out};
use super::progress;
use super::shutdown::Shutdown;
use crate::execution::JobExecution;
use crate::operator::{JobOperator, JobOperatorError, Recovery};
use crate::status::BatchStatus;

/// The exit code is that of FAILED when something does not go on, or has not ended COMPLETED.
pub(super) fn run(
    operator: &JobOperator,
    dry_run: bool,
    interval: Duration,
    mut shutdown: Shutdown,
) -> Result<ExitCode, JobOperatorError> {
    if dry_run {
        let dead = operator.dead_executions()?;
        for execution in &dead {
            out(format_args!(
                "{} {}, and its process is dead",
                name(execution),
                execution.status
            ));
        }
        told(dead.is_empty());
        return Ok(ExitCode::SUCCESS);
    }
    let all = operator.recover()?;
    told(all.is_empty());
    let mut begun = Vec::new();
    let mut well = true;
    for recovered in all {
        let was = name(&recovered.execution);
        match recovered.recovery {
            Recovery::Restarted(id) => {
                out(format_args!("{was} goes on as execution {id}"));
                begun.push(id);
            }
            Recovery::Stopped => out(format_args!("{was} was to stop, and is closed STOPPED")),
            Recovery::Overtaken => out(format_args!("{was} is in other hands meanwhile")),
            Recovery::Refused(error) => {
                well = false;
                err(format_args!("error: {was} does not go on: {error}"));
            }
        }
    }
    for id in &begun {
        match progress::watch(operator, *id, &begun, interval, &mut shutdown) {
            Ok(Some(ended)) => {
                out(format_args!("{} {}", ended.name(), ended.status));
                well &= ended.status == BatchStatus::Completed;
            }
            Ok(None) => return Ok(ExitCode::FAILURE),
            Err(error) => {
                well = false;
                err(format_args!("error: {error}"));
            }
        }
    }
    Ok(if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn told(nothing: bool) {
    if nothing {
        out("no execution is dead");
    }
}

fn name(execution: &JobExecution) -> String {
    format!("execution {} of `{}`", execution.id, execution.job_name)
}
