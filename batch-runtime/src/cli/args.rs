//! The arguments.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::config::{Given, Origin, Setting};
use super::parameters::Parameters;
use crate::clock::Timestamp;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::status::BatchStatus;

/// Runs and looks after batch jobs.
#[derive(Debug, Parser)]
#[command(
    arg_required_else_help = true,
    after_help = "Exit code: 0 COMPLETED, 1 FAILED, 2 wrong usage or not started, 3 STOPPED; a job's property \
                  `batch.exit.codes` gives others"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) settings: Settings,

    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// What may also stand in the environment and in `batch.toml`; see `config show`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(super) struct Settings {
    /// Settings file [default: batch.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Job repository: sqlite://PATH, sqlite://:memory:, postgres://... or mysql://... [default: sqlite://batch.db]
    #[arg(long, global = true, value_name = "URL")]
    repository: Option<String>,

    /// Time zone of the times in PostgreSQL's and MySQL's tables, which may be shared with a JVM: UTC, a name such as
    /// Europe/Berlin, or an offset such as +02:00 [default: UTC]
    #[arg(long, global = true, value_name = "ZONE", allow_hyphen_values = true)]
    repository_time_zone: Option<String>,

    /// Directories with Job XML files, separated by ':' [default: the program's own, or the current directory]
    #[arg(long, global = true, value_name = "DIRS")]
    job_path: Option<String>,

    /// Sets a system property, such as -Djavax.jobpath=jobs
    #[arg(short = 'D', global = true, value_name = "NAME=VALUE", value_parser = pair)]
    system: Vec<(String, String)>,

    /// How long a job has to stop after SIGTERM or Ctrl-C [default: 30]
    #[arg(long, global = true, value_name = "SECONDS")]
    shutdown_timeout: Option<String>,

    /// How often a line tells of progress where there is no terminal; 0: never [default: 10]
    #[arg(long, global = true, value_name = "SECONDS")]
    progress_interval: Option<String>,

    /// What is logged: off, error, warn, info, debug or trace [default: warn]
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,

    /// How it is logged: text or json [default: text]
    #[arg(long, global = true, value_name = "FORMAT")]
    log_format: Option<String>,

    /// Tells metrics at http://127.0.0.1:PORT/metrics while a job runs, for Prometheus [default: none]
    #[arg(long, global = true, value_name = "PORT")]
    metrics_port: Option<String>,
}

impl Settings {
    pub(super) fn given(self) -> Given {
        let mut given = Given::default();
        for (setting, value, name) in [
            (Setting::Repository, self.repository, "--repository"),
            (
                Setting::RepositoryTimeZone,
                self.repository_time_zone,
                "--repository-time-zone",
            ),
            (Setting::JobPath, self.job_path, "--job-path"),
            (
                Setting::ShutdownTimeout,
                self.shutdown_timeout,
                "--shutdown-timeout",
            ),
            (
                Setting::ProgressInterval,
                self.progress_interval,
                "--progress-interval",
            ),
            (Setting::Log, self.log, "--log"),
            (Setting::LogFormat, self.log_format, "--log-format"),
            (Setting::MetricsPort, self.metrics_port, "--metrics-port"),
        ] {
            given.set(setting, value, Origin::Argument(name));
        }
        for (name, value) in self.system {
            given.system.push((name, value, Origin::Argument("-D")));
        }
        given
    }
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
                            complete, or that is running, is refused.\n\n\
                            Examples:\n  launch nightly day=2026-11-20 -note=again\n  \
                            launch nightly 'day(date)=2026-11-20' 'password(secret)=env:DB_PASSWORD'"
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
        #[arg(value_parser = execution_id)]
        execution: JobExecutionId,
        #[command(flatten)]
        parameters: Parameters,
    },
    /// Asks a running execution, in whatever process, to stop after the item in hand, and waits up to 5 seconds
    Stop {
        /// Id of the execution
        #[arg(value_parser = execution_id)]
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
        #[arg(value_parser = execution_id)]
        execution: JobExecutionId,
        /// Writes a report to a file, as .html with a timeline, or as .md
        #[arg(long, value_name = "FILE", conflicts_with = "json")]
        report: Option<PathBuf>,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Lists executions of all jobs, newest first
    Executions {
        /// Those of this job
        #[arg(long, value_name = "JOB")]
        job: Option<String>,
        /// Those in this status; may be given several times
        #[arg(long, value_name = "STATUS", ignore_case = true, value_parser = status)]
        status: Vec<BatchStatus>,
        /// Those that were created then or later, such as 2026-11-20 or 2026-11-20T13:45:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<Timestamp>,
        /// Those that were created before
        #[arg(long, value_name = "TIME")]
        until: Option<Timestamp>,
        /// At most so many
        #[arg(long, value_name = "COUNT", default_value = "100", value_parser = count)]
        limit: u32,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Lets executions go on whose process is dead, and waits for their end
    ///
    /// Those that were to stop are closed STOPPED.
    Recover {
        /// Only shows which they are
        #[arg(long)]
        dry_run: bool,
        /// Closes this execution of a program that keeps no lease, such as Spring Batch, whose process you know to be dead; its
        /// instance can then be launched again, here or there
        #[arg(long, value_name = "ID", conflicts_with = "dry_run", value_parser = execution_id)]
        declare_dead: Option<JobExecutionId>,
    },
    /// Gives up an execution that failed, stopped or died: nothing continues its instance any more
    Abandon {
        /// Id of the execution
        #[arg(value_parser = execution_id)]
        execution: JobExecutionId,
    },
    /// Deletes instances that nothing continues: those that are COMPLETED or ABANDONED
    #[command(group = ArgGroup::new("which").required(true).multiple(true).args(["before", "older_than", "keep"]))]
    Purge {
        /// Those of this job
        #[arg(long, value_name = "JOB")]
        job: Option<String>,
        /// Those that ended before this time, such as 2026-11-20
        #[arg(long, value_name = "TIME", conflicts_with = "older_than")]
        before: Option<Timestamp>,
        /// Those that ended more than so many days ago
        #[arg(long, value_name = "DAYS", value_parser = count)]
        older_than: Option<u32>,
        /// Keeps so many instances of each job, the newest
        #[arg(long, value_name = "COUNT", value_parser = count)]
        keep: Option<u32>,
        /// Also those that failed or were stopped, which could go on
        #[arg(long)]
        force: bool,
        /// Only shows which they are
        #[arg(long)]
        dry_run: bool,
        /// Appends each to a file before it is deleted, as a line of JSON
        #[arg(long, value_name = "FILE")]
        archive: Option<PathBuf>,
    },
    /// Prints an instance with all that belongs to it, as a line of JSON
    Export {
        /// Id of the instance
        #[arg(value_parser = instance_id)]
        instance: JobInstanceId,
    },
    /// Puts instances in that were exported or archived, one on each line of a file
    Import {
        /// The file
        file: PathBuf,
    },
    /// Shows the parameters of an execution as a start would take them
    Params {
        /// Id of the execution
        #[arg(value_parser = execution_id)]
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
    /// The tables of the repository
    Db {
        #[command(subcommand)]
        verb: DbVerb,
    },
    /// The settings
    Config {
        #[command(subcommand)]
        verb: ConfigVerb,
    },
    /// Prints a script that completes commands, for a shell
    Completions {
        /// The shell
        shell: Shell,
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

#[derive(Debug, Subcommand)]
pub(super) enum ConfigVerb {
    /// Shows what is in effect, and who set it: argument, environment, file, program or default
    Show {
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum DbVerb {
    /// Tells whether the tables are there and up to date, and changes nothing
    Status,
    /// Makes the tables, or brings them up to date, as every start does
    Migrate,
    /// Prints the statements that make the tables
    ///
    /// They make the tables and do not record that: when somebody has run them by hand, `db status` says "not up to date" until
    /// `db migrate`, or the first start, has found the tables there and recorded it.
    ExportSchema {
        /// For which database [default: that of --repository]
        #[arg(long, value_enum)]
        database: Option<Schema>,
    },
}

/// The databases that a repository can be on.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Schema {
    Sqlite,
    Postgresql,
    /// Also for MariaDB
    Mysql,
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

fn execution_id(text: &str) -> Result<JobExecutionId, &'static str> {
    let id = text.parse();
    id.map_err(|_| "this is no id of an execution; expected a number, as `executions` lists them")
}

fn instance_id(text: &str) -> Result<JobInstanceId, &'static str> {
    let id = text.parse();
    id.map_err(|_| "this is no id of an instance; expected a number, as `list JOB` shows them")
}

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse();
    count.map_err(|_| format!("expected a whole number from 0 to {}", u32::MAX))
}

fn status(text: &str) -> Result<BatchStatus, String> {
    let all = BatchStatus::ALL;
    let found = all
        .iter()
        .find(|status| status.as_str().eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|status| status.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
