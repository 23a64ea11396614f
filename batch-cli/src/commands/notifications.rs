//! `notifications`: lists what is not delivered yet, sends it, tests targets.

use std::collections::BTreeSet;
use std::process::ExitCode;

use batch_runtime::notify::PendingNotification;
use batch_runtime::{JobOperator, JobOperatorError};
use clap::Args;
use serde_json::{Value, json as value};

use crate::error::CliError;
use crate::json;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session, exit_code};
use crate::tables::Table;

/// Lists the notifications that are not delivered yet
#[derive(Args, Debug)]
pub(crate) struct Notifications {
    /// Sends them first, also those that are to be tried again later
    #[arg(long)]
    send: bool,
    /// Sends a test to this target, or to all targets, and lists nothing
    #[arg(long, value_name = "TARGET", num_args = 0..=1, conflicts_with = "send")]
    test: Option<Option<String>>,
    /// Prints JSON
    #[arg(long, conflicts_with = "test")]
    json: bool,
}

impl Notifications {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        if let Some(target) = self.test {
            session.deliver_notifications()?;
            // A test needs no repository, which a new installation does not have yet.
            return test(&session.in_memory()?, target);
        }
        if self.send {
            session.deliver_notifications()?;
        }
        let operator = session.open_to_read()?;
        if self.send {
            operator.send_notifications()?;
        }
        let pending = operator.pending_notifications()?;
        if self.send {
            let targets = operator.notification_targets();
            let others: BTreeSet<&str> = pending.iter().map(|one| one.target.as_str()).collect();
            for other in others.iter().filter(|other| !targets.contains(other)) {
                errln!(
                    "note: this program has no target `{other}`; add it to `[notify]` in batch.toml, or purge the job instances"
                );
            }
        }
        if self.json {
            json::print(&pending.iter().map(to_json).collect());
            return Ok(ExitCode::SUCCESS);
        }
        if pending.is_empty() {
            outln!("no notification waits for its delivery");
        }
        let mut table = Table::new(&[
            "TARGET",
            "EVENT",
            "JOB",
            "EXECUTION",
            "DUE",
            "ATTEMPTS",
            "LAST ERROR",
        ]);
        for one in &pending {
            table.row([
                one.target.clone(),
                one.event.to_string(),
                one.job.clone(),
                one.execution.to_string(),
                one.due.to_string(),
                one.attempts.to_string(),
                one.last_error.clone().unwrap_or_default(),
            ]);
        }
        table.print();
        Ok(ExitCode::SUCCESS)
    }
}

/// Sends a test to one target, or to all.
fn test(operator: &JobOperator, target: Option<String>) -> Outcome {
    let targets = match &target {
        Some(target) => vec![target.as_str()],
        None => operator.notification_targets(),
    };
    if targets.is_empty() {
        return Err(CliError::Usage(
            "there is no notification target; add one to `[notify]` in batch.toml".into(),
        ));
    }
    let mut succeeded = true;
    for target in targets {
        match operator.test_notification(target) {
            Ok(()) => outln!("{target}: delivered"),
            Err(unknown @ JobOperatorError::NoSuchNotificationTarget { .. }) => return Err(unknown.into()),
            Err(error) => {
                errln!("error: {error}");
                succeeded = false;
            }
        }
    }
    Ok(exit_code(succeeded))
}

fn to_json(one: &PendingNotification) -> Value {
    value!({
        "notification": one.id,
        "target": one.target,
        "event": one.event.as_str(),
        "job": one.job,
        "execution": one.execution.0,
        "created": one.created.to_string(),
        "due": one.due.to_string(),
        "attempts": one.attempts,
        "lastError": one.last_error,
    })
}
