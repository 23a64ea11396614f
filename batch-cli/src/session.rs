//! The state that every command works with: the settings, and a runtime configured by them.

use std::process::ExitCode;

use batch_runtime::operator::Definitions;
use batch_runtime::repository::{DatabaseKind, MigrationStatus};
use batch_runtime::{BatchRuntime, BatchRuntimeBuilder, JobOperator, JobOperatorError};

use crate::dispatch;
use crate::error::CliError;
use crate::metrics::Health;
use crate::parameters::check_properties;
use crate::patience::waiting_for;
use crate::print::errln;
#[cfg(feature = "console")]
use crate::prometheus::Metrics;
use crate::settings::{Origin, Setting, Settings};
use crate::signals::Shutdown;
use crate::telemetry::Telemetry;
use crate::{databases, exit_guard, metrics, notify};

const IN_MEMORY: &str = "memory:";

pub(crate) type Outcome = Result<ExitCode, CliError>;

/// Returns the exit code of a command that has succeeded or failed.
pub(crate) fn exit_code(succeeded: bool) -> ExitCode {
    if succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

pub(crate) struct Session {
    pub(crate) settings: Settings,
    runtime: BatchRuntimeBuilder,
    telemetry: Telemetry,
    /// True if it delivers notifications; otherwise it only stores them.
    delivers: bool,
    arguments: fn() -> clap::Command,
}

impl Session {
    /// Creates a session. `arguments` returns the command line of the program.
    pub(crate) fn new(
        settings: Settings,
        runtime: BatchRuntimeBuilder,
        telemetry: Telemetry,
        arguments: fn() -> clap::Command,
    ) -> Self {
        let mut runtime = telemetry
            .observe(runtime)
            .repository(settings.repository.as_str())
            .repository_time_zone(settings.repository_time_zone.clone())
            .stop_timeout(settings.stop_timeout)
            .lease_time(settings.lease_time)
            .crash_limit(settings.crash_limit);
        if let Some(threads) = settings.partition_threads {
            runtime = runtime.partition_threads(threads.get());
        }
        let (name, origin) = settings.get(Setting::Dispatch);
        if *origin != Origin::Default && !dispatch::is_address(name) {
            runtime = runtime.dispatch(name);
        }
        if let Some(dialect) = settings.dialect {
            runtime = runtime.dialect(dialect);
        }
        for (name, value) in settings.system_properties() {
            runtime = runtime.system_property(name, value);
        }
        let (directories, origin) = settings.get(Setting::JobPath);
        if *origin != Origin::Default {
            runtime = runtime.job_path(directories);
        }
        Self {
            settings,
            runtime,
            telemetry,
            delivers: false,
            arguments,
        }
    }

    /// Returns the command line of the program.
    pub(crate) fn arguments(&self) -> clap::Command {
        (self.arguments)()
    }

    /// Returns the configured runtime, for commands that need no repository.
    pub(crate) fn runtime(&self) -> BatchRuntimeBuilder {
        self.runtime.clone()
    }

    /// Returns the jobs and artifacts, without a repository.
    pub(crate) fn definitions(&self) -> Result<Definitions, CliError> {
        Ok(databases::only_names(self.runtime(), &self.settings.databases).definitions()?)
    }

    /// Opens the repository, and creates it if it does not exist.
    pub(crate) fn create(&self) -> Result<JobOperator, CliError> {
        Ok(self.build()?.job_operator())
    }

    /// As `create`, to start a job. If the repository does not exist, the job is checked first, so that a mistake does not create one.
    // Spec: CLI-01
    pub(crate) fn create_for(
        &self,
        check: impl FnOnce(BatchRuntimeBuilder) -> Result<(), JobOperatorError>,
    ) -> Result<JobOperator, CliError> {
        if !self.exists()? {
            check(self.runtime())?;
        }
        self.create()
    }

    /// As `create`, and returns the runtime.
    pub(crate) fn build(&self) -> Result<BatchRuntime, CliError> {
        let runtime = match self.delivers {
            true => self.runtime(),
            false => notify::queue(self.runtime(), &self.settings.targets),
        };
        let runtime = waiting_for(self.repository(), || runtime.build())?;
        exit_guard::record_by(&runtime.job_operator());
        Ok(runtime)
    }

    /// Returns the repository, and what may keep a command waiting for it.
    pub(crate) fn repository(&self) -> String {
        let reason = match self.settings.repository.database() {
            DatabaseKind::Sqlite => ", which another process may have locked",
            _ => "",
        };
        format!("the repository `{}`{reason}", self.settings.repository)
    }

    /// Opens the repository, which has to exist.
    pub(crate) fn open(&self) -> Result<JobOperator, CliError> {
        if self.is_in_memory() {
            errln!("note: the repository `memory:` is empty, because it holds only what this process runs");
        }
        if self.exists()? {
            return self.create();
        }
        Err(CliError::NoRepository(self.settings.repository.to_string()))
    }

    /// Opens the repository without upgrading its tables, which older programs could not use any more: for commands that only read.
    // Spec: CLI-15
    pub(crate) fn open_to_read(&self) -> Result<JobOperator, CliError> {
        match self.settings.repository.migration_status()? {
            MigrationStatus::Pending(_) => Err(CliError::OldTables(self.settings.repository.to_string())),
            _ => self.open(),
        }
    }

    /// Opens the repository for a command that only reads. If it does not exist and the user did not name it, opens an empty one in memory instead.
    pub(crate) fn open_or_empty(&self) -> Result<JobOperator, CliError> {
        let (_, origin) = self.settings.get(Setting::Repository);
        if matches!(origin, Origin::Program | Origin::Default) && !self.exists()? {
            return self.in_memory();
        }
        self.open_to_read()
    }

    /// Opens an empty repository in memory, for this process only.
    pub(crate) fn in_memory(&self) -> Result<JobOperator, CliError> {
        Ok(self.runtime().repository(IN_MEMORY).build()?.job_operator())
    }

    /// Returns whether the repository ends with this process.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.settings.repository.database() == DatabaseKind::Memory
    }

    /// Returns whether a reader of the repository may wait for a transaction of the job.
    pub(crate) fn readers_wait(&self) -> bool {
        self.is_in_memory() || self.settings.repository.to_string().contains(":memory:")
    }

    pub(crate) fn exists(&self) -> Result<bool, CliError> {
        Ok(self.settings.repository.migration_status()? != MigrationStatus::Absent)
    }

    /// Prepares the process to run jobs: connects to the server that carries partitions, serves metrics, listens for signals and guards
    /// its exit code.
    pub(crate) fn listen(&mut self) -> Result<Shutdown, CliError> {
        self.listen_as(&Health::default())
    }

    /// Fails if an argument `-Dname=value` was meant as a parameter of the job.
    pub(crate) fn check_properties(&self, job: &str) -> Result<(), CliError> {
        let known = || {
            self.definitions()
                .map(|definitions| definitions.parameter_names(job).unwrap_or_default())
        };
        check_properties(std::env::args_os(), || known().unwrap_or_default())
    }

    /// Connects to the server that carries partitions, if the settings name one: jobs may name its transport.
    pub(crate) fn connect_dispatch(&mut self) -> Result<(), CliError> {
        let (dispatch, _) = self.settings.get(Setting::Dispatch);
        if dispatch::is_address(dispatch) {
            self.runtime = dispatch::connect(self.runtime(), dispatch)?;
        }
        Ok(())
    }

    /// Returns the notification targets' jobs that are none of the program's. None if its jobs cannot be read: a command reports that.
    pub(crate) fn unknown_notified_jobs(&self) -> Vec<String> {
        let targets = &self.settings.targets;
        if targets.iter().all(|target| target.jobs.is_empty()) {
            return Vec::new();
        }
        let known = self.definitions().map(|definitions| definitions.job_path().jobs);
        known.map_or_else(|_| Vec::new(), |known| notify::unknown_jobs(targets, &known))
    }

    /// Delivers notifications to the targets of the settings.
    pub(crate) fn deliver_notifications(&mut self) -> Result<(), CliError> {
        self.runtime = notify::add(self.runtime(), &self.settings.targets)?;
        self.delivers = true;
        Ok(())
    }

    /// Prepares the runtime to run jobs: with the broker, the notification targets and the databases of the settings.
    fn prepare_to_run(&mut self) -> Result<(), CliError> {
        self.connect_dispatch()?;
        self.deliver_notifications()?;
        self.name_databases()
    }

    /// Names the databases of the settings.
    pub(crate) fn name_databases(&mut self) -> Result<(), CliError> {
        self.runtime = databases::add(self.runtime(), &self.settings.databases)?;
        Ok(())
    }

    /// As `listen`, and collects metrics even if no address for them is configured.
    #[cfg(feature = "console")]
    pub(crate) fn listen_with_metrics(&mut self) -> Result<(Shutdown, Metrics), CliError> {
        self.prepare_to_run()?;
        let metrics =
            metrics::collect_and_serve(self.settings.metrics_port, &Health::default(), &self.telemetry)?;
        exit_guard::arm();
        Ok((Shutdown::listen(self.settings.shutdown_timeout), metrics))
    }

    /// Returns the log lines that the console shows.
    #[cfg(feature = "console")]
    pub(crate) fn log_lines(&self) -> Option<batch_console::LogLines> {
        self.telemetry.lines.clone()
    }

    /// As `listen`, with the health of the process.
    pub(crate) fn listen_as(&mut self, health: &Health) -> Result<Shutdown, CliError> {
        self.prepare_to_run()?;
        for warning in self.unknown_notified_jobs() {
            errln!("warning: {warning}");
        }
        metrics::serve(self.settings.metrics_port, health, &self.telemetry)?;
        exit_guard::arm();
        Ok(Shutdown::listen(self.settings.shutdown_timeout))
    }
}
