//! The command line of programs on `batch-runtime`: one line in `main` makes every command of the operator available.
//!
//! ```no_run
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     batch_cli::main()
//! }
//! ```
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | the job ended COMPLETED, or the command succeeded |
//! | 1 | the job ended FAILED, or its end could not be recorded; `stop`: the execution is still running |
//! | 2 | wrong usage, or the job could not be started |
//! | 3 | the job ended STOPPED |
//! | 10 | the job was not started: its instance is complete (0 with `launch --complete-ok`) |
//! | 11 | the job was not started: its instance is running (`launch --wait` waits) |
//! | 75 | the job was not started, and may be later: another execution of a job that runs one at a time has to end first, or the repository cannot be used |
//! | 130, 143 | a second Ctrl-C, a second SIGTERM: exited at once, like a crash; the same `launch` resumes |
//!
//! A job maps its exit statuses to other codes with the property `batch.exit.codes`: `NOTHING TO DO=5, *SKIPS=4`.
//!
//! SIGTERM and SIGINT (Ctrl-C) request the job to stop at the next item. It ends STOPPED, and the next launch resumes it. If it
//! takes longer than `--shutdown-timeout`, or the signal is sent again, the process exits as if it had crashed; the next launch
//! resumes the job from its last checkpoint. The same applies to an artifact that calls `exit`, whose code is replaced by 1.
//!
//! The crate uses nothing but the public API of `batch-runtime`. Its features name the databases that a repository can be on:
//! `sqlite` (default), `postgres`, `mysql`, `bundled-postgres`, `bundled-mysql`. With `nats` it carries partitions by NATS, and with
//! `otlp` it sends traces, metrics and logs to OpenTelemetry, with `lineage` the lineage of jobs as
//! OpenLineage events, with `notify` notifications to webhooks and commands, with `console` it serves an operations console,
//! with `prometheus` metrics for Prometheus, and with `tokio` methods of artifacts may be `async`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod commands;
#[cfg(feature = "console")]
mod console;
mod data;
mod databases;
mod dispatch;
mod error;
mod exit_guard;
mod follow;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod json;
mod logging;
mod metrics;
mod notify;
mod options;
mod parameters;
mod patience;
mod print;
mod progress;
mod prometheus;
mod report;
mod session;
mod settings;
mod signals;
mod tables;
mod telemetry;

use std::process::ExitCode;

pub use batch_runtime::embed_jobs;
use batch_runtime::operator::record_panic_locations;
use batch_runtime::{BatchRuntimeBuilder, time::TimeZone};
use clap::FromArgMatches;

use crate::error::{CliError, USAGE};
use crate::options::Arguments;
use crate::print::errln;
use crate::session::Session;
use crate::settings::{Origin, Setting, Settings, Source};
use crate::telemetry::Telemetry;

/// Runs the command line with its defaults: jobs in the current directory, repository `sqlite://batch.db`.
pub fn main() -> ExitCode {
    Cli::new().main()
}

/// A command line with defaults that the program sets.
#[derive(Clone, Debug, Default)]
pub struct Cli {
    defaults: Source,
    runtime: BatchRuntimeBuilder,
}

impl Cli {
    /// Creates a command line with the usual defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the Job XML files that [`embed_jobs!`] has compiled into the program, see [`BatchRuntimeBuilder::jobs`]. The program needs no
    /// directory then. A file of `--job-path` replaces an embedded file with the same id, with a warning.
    // Spec: EMBED-01, EMBED-02
    #[must_use]
    pub fn jobs(mut self, files: &[(&str, &str)]) -> Self {
        self.runtime = self.runtime.jobs(files);
        self.defaults.embeds_jobs |= !files.is_empty();
        self
    }

    /// Adds the text of a Job XML file, see [`BatchRuntimeBuilder::job_xml`].
    // Spec: EMBED-01, EMBED-02
    #[must_use]
    pub fn job_xml(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.runtime = self.runtime.job_xml(name, text);
        self.defaults.embeds_jobs = true;
        self
    }

    /// Sets the directories of Job XML files. `--job-path` and `-Djavax.jobpath` override it.
    #[must_use]
    pub fn job_path(self, directories: impl Into<String>) -> Self {
        self.with_default(Setting::JobPath, directories.into())
    }

    /// Sets the URL of the repository. `--repository` overrides it.
    #[must_use]
    pub fn repository(self, url: impl Into<String>) -> Self {
        self.with_default(Setting::Repository, url.into())
    }

    /// Sets the time zone of the times in the repository, see [`BatchRuntimeBuilder::repository_time_zone`].
    /// `--repository-time-zone` overrides it.
    #[must_use]
    pub fn repository_time_zone(self, zone: TimeZone) -> Self {
        self.with_default(Setting::RepositoryTimeZone, zone.to_string())
    }

    /// Sets where partitions run, see [`BatchRuntimeBuilder::dispatch`], or the address of a server. The setting `dispatch` overrides it.
    #[must_use]
    pub fn dispatch(self, dispatcher: impl Into<String>) -> Self {
        self.with_default(Setting::Dispatch, dispatcher.into())
    }

    /// Sets a system property. `-D` overrides it.
    #[must_use]
    pub fn system_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.defaults
            .system
            .push((name.into(), value.into(), Origin::Program));
        self
    }

    /// Sets statements that create the tables of the program, see [`BatchRuntimeBuilder::schema_sql`].
    // Spec: SCHEMA-01
    #[must_use]
    pub fn schema_sql(mut self, statements: impl Into<String>) -> Self {
        self.runtime = self.runtime.schema_sql(statements);
        self
    }

    /// Configures the runtime by everything that its builder has: observers, artifact loaders, clocks, dispatchers, the tokio runtime of
    /// `async` methods.
    ///
    /// The settings of the command line are applied afterwards. So the settings determine the repository, its time zone, and the times of
    /// leases and stops; [`repository`](Self::repository) and the others set their defaults.
    ///
    /// ```no_run
    /// use batch_runtime::observer::{JobEvent, JobObserver};
    ///
    /// struct Log;
    ///
    /// impl JobObserver for Log {
    ///     fn on_event(&self, event: &JobEvent) {
    ///         println!("{event:?}");
    ///     }
    /// }
    ///
    /// fn main() -> std::process::ExitCode {
    ///     batch_cli::Cli::new()
    ///         .configure(|runtime| runtime.observer(Log))
    ///         .main()
    /// }
    /// ```
    // Spec: CLI-11
    #[must_use]
    pub fn configure(mut self, configure: impl FnOnce(BatchRuntimeBuilder) -> BatchRuntimeBuilder) -> Self {
        self.runtime = configure(self.runtime);
        self
    }

    fn with_default(mut self, setting: Setting, value: String) -> Self {
        self.defaults.set(setting, Some(value), Origin::Program);
        self
    }

    /// Parses the arguments of the process and runs the command that they name.
    pub fn main(self) -> ExitCode {
        let matches = options::command().try_get_matches_from(parameters::escaped(std::env::args_os()));
        match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
            Ok(arguments) => {
                let code = self.run(arguments).unwrap_or_else(|error| {
                    errln!("error: {error}");
                    ExitCode::from(error.exit_code())
                });
                exit_guard::disarm();
                code
            }
            Err(error) => {
                // `--help` and `--version` arrive here too.
                let code = if error.use_stderr() { USAGE } else { 0 };
                let _ = error.print();
                ExitCode::from(code)
            }
        }
    }

    fn run(self, arguments: Arguments) -> Result<ExitCode, CliError> {
        let file = arguments.options.config.clone();
        settings::warn_of_misspelt_variables();
        let settings = Settings::load(arguments.options.into_source(), file.as_deref(), self.defaults)?;
        let telemetry = match arguments.command.runs_jobs() {
            true => Telemetry::start(),
            false if arguments.command.closes_jobs() => Telemetry::of_closed_jobs(),
            false => Telemetry::default(),
        };
        #[cfg(feature = "console")]
        let telemetry = telemetry.with_lines(arguments.command.is_console());
        logging::start(&settings, &telemetry);
        record_panic_locations();
        let mut session = Session::new(settings, self.runtime, telemetry.clone(), options::command);
        let outcome = arguments.command.run(&mut session);
        exit_guard::disarm();
        telemetry.end();
        outcome
    }
}
