//! The command line: one line in a program's `main` gives every verb of the operator.
//!
//! ```no_run
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     batch_runtime::cli::main()
//! }
//! ```
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | the job ended COMPLETED, or the verb did what it was asked for |
//! | 1 | the job ended FAILED, or its end could not be recorded; `stop`: it has not stopped yet |
//! | 2 | wrong usage, or the job could not be started |
//! | 3 | the job ended STOPPED |
//!
//! A job's property `batch.exit.codes` gives other codes to its exit statuses: `NOTHING TO DO=5, *SKIPS=4`.
//!
//! SIGTERM and SIGINT (Ctrl-C) ask the job to stop at the next item; it ends STOPPED, and goes on from there when it is launched
//! again. If that takes longer than `--shutdown-timeout`, or the signal comes again, the process ends as by a crash, from which
//! the next launch goes on too.

mod archive;
mod args;
mod check;
mod config;
mod explain;
mod graph;
mod logging;
mod metrics;
mod output;
mod parameters;
mod print;
mod progress;
mod recover;
mod report;
mod shutdown;
mod tables;
mod verbs;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Command, CommandFactory, FromArgMatches};

use self::args::Arguments;
use self::config::{Config, Given, Origin, Setting};
use crate::artifact::BatchArtifactLoader;
use crate::error::remember_places_of_panics;
use crate::loader::Additions;
use crate::time_zone::TimeZone;

/// Exit code of wrong usage and of a job that could not be started.
const USAGE: u8 = 2;

/// What clap knows of the arguments, for this program.
fn command() -> Command {
    Arguments::command().display_name(program()).version(concat!(
        "(batch-runtime ",
        env!("CARGO_PKG_VERSION"),
        ")"
    ))
}

/// What the program is called.
fn program() -> String {
    let program = std::env::current_exe().ok();
    let stem = program.as_deref().and_then(Path::file_stem);
    stem.map_or_else(|| "batch".into(), |stem| stem.to_string_lossy().into_owned())
}

/// Runs the command line with its defaults: jobs in the current directory, repository `sqlite://batch.db`.
pub fn main() -> ExitCode {
    Cli::new().main()
}

/// A command line with defaults of the program's own.
#[derive(Clone, Debug, Default)]
pub struct Cli {
    job_path: Option<String>,
    repository: Option<String>,
    repository_time_zone: Option<TimeZone>,
    system: Vec<(String, String)>,
    additions: Additions,
}

impl Cli {
    /// The usual defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the jobs are when neither `--job-path` nor `-Djavax.jobpath` says so.
    #[must_use]
    pub fn job_path(mut self, directories: impl Into<String>) -> Self {
        self.job_path = Some(directories.into());
        self
    }

    /// Where the repository is when `--repository` does not say so.
    #[must_use]
    pub fn repository(mut self, url: impl Into<String>) -> Self {
        self.repository = Some(url.into());
        self
    }

    /// The time zone of its times when `--repository-time-zone` does not say so, see
    /// [`BatchRuntimeBuilder::repository_time_zone`](crate::BatchRuntimeBuilder::repository_time_zone).
    #[must_use]
    pub fn repository_time_zone(mut self, zone: TimeZone) -> Self {
        self.repository_time_zone = Some(zone);
        self
    }

    /// Sets a system property, which `-D` may override.
    #[must_use]
    pub fn system_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.system.push((name.into(), value.into()));
        self
    }

    /// Adds a batch.xml that the program holds, see
    /// [`BatchRuntimeBuilder::batch_xml`](crate::BatchRuntimeBuilder::batch_xml).
    #[must_use]
    pub fn batch_xml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.additions.embedded.push((name.into(), text.into()));
        self
    }

    /// Sets the preferred artifact loader, see
    /// [`BatchRuntimeBuilder::artifact_loader`](crate::BatchRuntimeBuilder::artifact_loader).
    #[must_use]
    pub fn artifact_loader(mut self, loader: impl BatchArtifactLoader + 'static) -> Self {
        self.additions.loader = Some(Arc::new(loader));
        self
    }

    /// Reads the arguments of the process and does what they say.
    pub fn main(self) -> ExitCode {
        let matches = command().try_get_matches_from(parameters::shielded(std::env::args_os()));
        let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
            Ok(arguments) => arguments,
            Err(error) => {
                // `--help` and `--version` arrive here too, and are no errors.
                let code = if error.use_stderr() { USAGE } else { 0 };
                let _ = error.print();
                return ExitCode::from(code);
            }
        };
        self.run(arguments).unwrap_or_else(|problem| {
            print::err(format_args!("error: {problem}"));
            ExitCode::from(USAGE)
        })
    }

    fn run(self, arguments: Arguments) -> Result<ExitCode, String> {
        let Arguments { settings, verb } = arguments;
        let file = settings.config.clone();
        let (additions, program) = self.given();
        config::warn_of_misspelt_variables();
        let config = Config::of(settings.given(), file.as_deref(), program)?;
        logging::begin(&config)?;
        remember_places_of_panics();
        verbs::run(&config, additions, verb)
    }

    /// What the program says of the settings, and what cannot be set from outside.
    fn given(self) -> (Additions, Given) {
        let mut given = Given::default();
        given.set(Setting::Repository, self.repository, Origin::Program);
        let zone = self.repository_time_zone.map(|zone| zone.to_string());
        given.set(Setting::RepositoryTimeZone, zone, Origin::Program);
        given.set(Setting::JobPath, self.job_path, Origin::Program);
        for (name, value) in self.system {
            given.system.push((name, value, Origin::Program));
        }
        (self.additions, given)
    }
}
