//! The arguments that precede or follow every command.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser};

use crate::commands::Command;
use crate::settings::{Origin, Setting, Source};

/// Runs and operates batch jobs.
#[derive(Debug, Parser)]
#[command(
    arg_required_else_help = true,
    after_help = "Exit code: 0 COMPLETED, 1 FAILED, 2 wrong usage or not started, 3 STOPPED; not started because the instance is complete: 10, \
                  running: 11, or for now: 75; a job's property `batch.exit.codes` maps its exit statuses to others"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) options: Options,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Settings that the environment and `batch.toml` can set too; see `config show`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Options {
    /// Settings file [default: batch.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Job repository: sqlite://PATH, sqlite://:memory:, postgres://..., mysql://... or memory: [default: sqlite://batch.db]
    #[arg(long, global = true, value_name = "URL")]
    repository: Option<String>,

    /// Time zone of the times in PostgreSQL's and MySQL's tables, which may be shared with a JVM: UTC, a name such as
    /// Europe/Berlin, or an offset such as +02:00 [default: UTC]
    #[arg(long, global = true, value_name = "ZONE", allow_hyphen_values = true)]
    repository_time_zone: Option<String>,

    /// Directories with Job XML files, separated by ':' [default: set by the program, or the current directory]
    #[arg(long, global = true, value_name = "DIRS")]
    job_path: Option<String>,

    /// Sets a system property, such as -Djavax.jobpath=jobs
    #[arg(short = 'D', global = true, value_name = "NAME=VALUE", value_parser = pair)]
    system: Vec<(String, String)>,

    /// Where partitions run: local, repository, or an address such as nats://HOST [default: local]
    #[arg(long, global = true, value_name = "DISPATCHER")]
    dispatch: Option<String>,

    /// Time that a job has to stop after SIGTERM or Ctrl-C [default: 30]
    #[arg(long, global = true, value_name = "SECONDS")]
    shutdown_timeout: Option<String>,

    /// Interval of the progress lines where there is no terminal; 0: none [default: 10]
    #[arg(long, global = true, value_name = "SECONDS")]
    progress_interval: Option<String>,

    /// Log level: off, error, warn, info, debug or trace [default: warn]
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,

    /// Log format: text or json [default: text]
    #[arg(long, global = true, value_name = "FORMAT")]
    log_format: Option<String>,

    /// Serves the health of the process at http://127.0.0.1:PORT/health and /health/live while a job or worker runs, and metrics for Prometheus at
    /// /metrics (feature `prometheus`); 0 picks a free port, and an address such as 0.0.0.0:9464 is reached from other hosts [default: none]
    #[arg(long, global = true, value_name = "[ADDRESS:]PORT")]
    metrics_port: Option<String>,
}

impl Options {
    /// Returns the settings that were given as arguments.
    pub(crate) fn into_source(self) -> Source {
        let mut source = Source::default();
        for (setting, value) in [
            (Setting::Repository, self.repository),
            (Setting::RepositoryTimeZone, self.repository_time_zone),
            (Setting::JobPath, self.job_path),
            (Setting::Dispatch, self.dispatch),
            (Setting::ShutdownTimeout, self.shutdown_timeout),
            (Setting::ProgressInterval, self.progress_interval),
            (Setting::Log, self.log),
            (Setting::LogFormat, self.log_format),
            (Setting::MetricsPort, self.metrics_port),
        ] {
            source.set(setting, value, Origin::Argument(format!("--{}", setting.key())));
        }
        let properties = self.system.into_iter();
        source.system = properties
            .map(|(name, value)| (name, value, Origin::Argument("-D".into())))
            .collect();
        source
    }
}

/// Returns the command line of this program.
pub(crate) fn command() -> clap::Command {
    Arguments::command().display_name(program()).version(concat!(
        "(batch-runtime ",
        env!("CARGO_PKG_VERSION"),
        ")"
    ))
}

/// Returns the name of the program.
fn program() -> String {
    let program = std::env::current_exe().ok();
    let stem = program.as_deref().and_then(Path::file_stem);
    stem.map_or_else(|| "batch".into(), |stem| stem.to_string_lossy().into_owned())
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE"),
    }
}
