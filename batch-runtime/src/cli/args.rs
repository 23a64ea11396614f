//! The arguments.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::ids::JobExecutionId;
use crate::parameters::JobParameters;

/// Runs and looks after batch jobs.
#[derive(Debug, Parser)]
#[command(
    arg_required_else_help = true,
    after_help = "Exit code: 0 COMPLETED, 1 FAILED, 2 wrong usage or not started, 3 STOPPED"
)]
pub(super) struct Arguments {
    /// Job repository: sqlite://PATH, or sqlite://:memory: [default: sqlite://batch.db]
    #[arg(long, global = true, value_name = "URL")]
    pub(super) repository: Option<String>,

    /// Directories with Job XML files, separated by ':' [default: the program's own, or the current directory]
    #[arg(long, global = true, value_name = "DIRS")]
    pub(super) job_path: Option<String>,

    /// Sets a system property, such as -Djavax.jobpath=jobs
    #[arg(short = 'D', global = true, value_name = "NAME=VALUE", value_parser = pair)]
    pub(super) system: Vec<(String, String)>,

    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Starts a new instance of a job and waits for its end
    Start {
        /// Id of the job
        job: String,
        #[command(flatten)]
        parameters: Parameters,
    },
    /// Runs the instance of a job with these parameters: begins it, or goes on where it was interrupted
    #[command(
        after_help = "The same command again continues what a crash or a kill -9 interrupted. An instance that is \
                            complete, or that is running, is refused."
    )]
    Launch {
        /// Id of the job
        job: String,
        #[command(flatten)]
        parameters: Parameters,
    },
    /// Goes on with the instance of a failed or stopped execution and waits for its end
    ///
    /// Parameters add to those that the instance was started with, and override them.
    Restart {
        /// Id of an execution of the instance
        execution: JobExecutionId,
        #[command(flatten)]
        parameters: Parameters,
    },
    /// Asks a running execution, in whatever process, to stop after the item in hand, and waits up to 5 seconds
    Stop {
        /// Id of the execution
        execution: JobExecutionId,
    },
    /// Lists the jobs with their last executions, or the executions of one job
    List {
        /// Id of the job
        job: Option<String>,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows an execution with its parameters and steps
    Show {
        /// Id of the execution
        execution: JobExecutionId,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows a job as it would run: elements, artifacts with their types, properties with where each value comes from
    Explain {
        /// Id of the job
        job: String,
        #[command(flatten)]
        parameters: Parameters,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Draws a job as it would run
    Graph {
        /// Id of the job
        job: String,
        #[command(flatten)]
        parameters: Parameters,
        /// What to draw it as
        #[arg(long, value_enum, default_value_t)]
        format: GraphFormat,
        /// File to write instead of the standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Checks jobs against their artifacts, and starts nothing
    Check {
        /// Id of the job; all jobs when left out
        job: Option<String>,
        #[command(flatten)]
        parameters: Parameters,
        /// Takes warnings for mistakes, but for ART0009: what a writer does after a crash
        #[arg(long)]
        deny_warnings: bool,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
}

/// What a drawing is written as.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum GraphFormat {
    /// A picture for browsers and documents
    #[default]
    Svg,
    /// Text for Graphviz
    Dot,
    /// Text for Mermaid, as in Markdown
    Mermaid,
}

#[derive(Args, Debug)]
pub(super) struct Parameters {
    /// Job parameters
    #[arg(value_name = "NAME=VALUE", value_parser = pair)]
    parameters: Vec<(String, String)>,
}

impl Parameters {
    /// # Errors
    /// When a name is given twice.
    pub(super) fn into_parameters(self) -> Result<JobParameters, String> {
        let mut names = BTreeSet::new();
        match self.parameters.iter().find(|(name, _)| !names.insert(name)) {
            Some((twice, _)) => Err(format!("parameter `{twice}` is given twice")),
            None => Ok(self.parameters.into_iter().collect()),
        }
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
