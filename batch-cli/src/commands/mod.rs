//! The commands, one file each: its arguments and its `run`.
//!
//! To add one, write its file, and add it to the modules and to `commands!` below.

mod abandon;
mod artifacts;
mod candidates;
mod check;
mod completions;
mod config;
mod console;
mod db;
mod executions;
mod explain;
mod export;
mod graph;
mod import;
mod launch;
mod launches;
mod list;
mod new;
mod notifications;
mod params;
mod purge;
mod recover;
mod restart;
pub(crate) mod show;
mod start;
mod stop;
mod worker;
mod workers;

use batch_runtime::{JobExecutionId, JobInstanceId};
use clap::Subcommand;

use crate::session::{Outcome, Session};

/// Declares the enum of commands, and runs the one that was given.
macro_rules! commands {
    ($($name:ident($arguments:path),)+) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($name($arguments),)+
        }

        impl Command {
            pub(crate) fn run(self, session: &mut Session) -> Outcome {
                match self {
                    $(Self::$name(arguments) => arguments.run(session),)+
                }
            }
        }
    };
}

// In the order of `--help`.
commands! {
    Start(start::Start),
    Launch(launch::Launch),
    Restart(restart::Restart),
    Stop(stop::Stop),
    List(list::List),
    Show(show::Show),
    Executions(executions::Executions),
    Recover(recover::Recover),
    Abandon(abandon::Abandon),
    Purge(purge::Purge),
    Export(export::Export),
    Import(import::Import),
    Worker(worker::Worker),
    Workers(workers::Workers),
    Launches(launches::Launches),
    Notifications(notifications::Notifications),
    Console(console::Console),
    Params(params::Params),
    Artifacts(artifacts::Artifacts),
    Explain(explain::Explain),
    Graph(graph::Graph),
    Db(db::Db),
    Config(config::Config),
    Completions(completions::Completions),
    Candidates(candidates::Candidates),
    Check(check::Check),
    New(new::New),
}

impl Command {
    /// Returns whether the command runs jobs or partitions.
    pub(crate) fn runs_jobs(&self) -> bool {
        matches!(
            self,
            Self::Start(_)
                | Self::Launch(_)
                | Self::Restart(_)
                | Self::Recover(_)
                | Self::Worker(_)
                | Self::Console(_)
        )
    }

    /// Returns whether the command may close an execution whose process is dead, and runs nothing.
    pub(crate) fn closes_jobs(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Abandon(_))
    }
}

#[cfg(feature = "console")]
impl Command {
    /// Returns whether the command serves the console.
    pub(crate) fn is_console(&self) -> bool {
        matches!(self, Self::Console(_))
    }
}

fn execution_id(text: &str) -> Result<JobExecutionId, &'static str> {
    let id = text.parse();
    id.map_err(|_| "not the id of an execution; expected a number, as `executions` lists them")
}

fn instance_id(text: &str) -> Result<JobInstanceId, &'static str> {
    let id = text.parse();
    id.map_err(|_| "not the id of an instance; expected a number, as `list JOB` lists them")
}

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse();
    count.map_err(|_| format!("expected a whole number from 0 to {}", u32::MAX))
}

fn queue(text: &str) -> Result<String, &'static str> {
    match text.chars().count() {
        1..=100 => Ok(text.to_owned()),
        _ => Err("the name of a queue has 1 to 100 characters"),
    }
}
