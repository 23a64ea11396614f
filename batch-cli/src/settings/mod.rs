//! The settings, each with its source: arguments override the environment, `batch.toml`, the program and the defaults, in this
//! order.

mod console;
mod databases;
mod file;
mod notify;

use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

pub(crate) use self::console::ConsoleSettings;
#[cfg(feature = "console")]
pub(crate) use self::console::UserSettings;
pub(crate) use self::databases::DatabaseSettings;
pub(crate) use self::notify::TargetSettings;

use batch_runtime::Dialect;
use batch_runtime::repository::RepositoryUrl;
use batch_runtime::time::TimeZone;
use batch_runtime::url::redact;
use batch_runtime::xml::suggest::nearest;

use tracing::level_filters::LevelFilter;

use crate::error::CliError;
use crate::metrics::Address;
use crate::print::errln;

/// The prefix of all environment variables.
const PREFIX: &str = "BATCH_";
/// The system property of the job path.
// Spec: PATH-02
const JOB_PATH: &str = "javax.jobpath";

/// Declares the settings: key in the file, environment variable, default.
macro_rules! settings {
    ($($name:ident $key:literal $variable:literal $default:literal)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Setting {
            $($name,)+
        }

        impl Setting {
            const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the key in the file, which is also the name of the option.
            pub(crate) fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)+ }
            }

            fn variable(self) -> &'static str {
                match self { $(Self::$name => $variable,)+ }
            }

            /// Returns the default; empty if the setting is not set by default.
            fn default(self) -> &'static str {
                match self { $(Self::$name => $default,)+ }
            }
        }
    };
}

// In the order of `config show`.
settings! {
    Repository         "repository"           "BATCH_REPOSITORY"           "sqlite://batch.db"
    JobPath            "job-path"             "BATCH_JOB_PATH"             "."
    ShutdownTimeout    "shutdown-timeout"     "BATCH_SHUTDOWN_TIMEOUT"     "30"
    StopTimeout        "stop-timeout"         "BATCH_STOP_TIMEOUT"         "5"
    LeaseTime          "lease-time"           "BATCH_LEASE_TIME"           "30"
    PartitionThreads   "partition-threads"    "BATCH_PARTITION_THREADS"    ""
    Log                "log"                  "BATCH_LOG"                  "warn"
    LogFormat          "log-format"           "BATCH_LOG_FORMAT"           "text"
    MetricsPort        "metrics-port"         "BATCH_METRICS_PORT"         ""
    CrashLimit         "crash-limit"          "BATCH_CRASH_LIMIT"          "3"
    RepositoryTimeZone "repository-time-zone" "BATCH_REPOSITORY_TIME_ZONE" "UTC"
    ProgressInterval   "progress-interval"    "BATCH_PROGRESS_INTERVAL"    "10"
    Dialect            "dialect"              "BATCH_DIALECT"              ""
    Dispatch           "dispatch"             "BATCH_DISPATCH"             "local"
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Argument(String),
    Environment(&'static str),
    /// File and line.
    File(String),
    Program,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => write!(f, "argument {name}"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::File(place) => f.write_str(place),
            Self::Program => f.write_str("program"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The values of one source: the arguments, the file or the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    values: Vec<(Setting, String, Origin)>,
    /// System properties: name and value.
    pub(crate) system: Vec<(String, String, Origin)>,
    /// True if the program embeds jobs.
    pub(crate) embeds_jobs: bool,
    /// The databases beside the repository, which only a file has.
    databases: Vec<DatabaseSettings>,
    /// The notification targets, which only a file has.
    targets: Vec<TargetSettings>,
    /// The console, which only a file has.
    console: ConsoleSettings,
}

impl Source {
    /// Sets a value, in place of an earlier one.
    pub(crate) fn set(&mut self, setting: Setting, value: Option<String>, origin: Origin) {
        if let Some(value) = value {
            self.values.retain(|(other, ..)| *other != setting);
            self.values.push((setting, value, origin));
        }
    }

    /// Returns the value of a setting. A system property can set the job path too.
    fn get(&self, setting: Setting) -> Option<(String, Origin)> {
        let value = self.values.iter().find(|(other, ..)| *other == setting);
        if let Some((_, value, origin)) = value {
            return Some((value.clone(), origin.clone()));
        }
        let mut properties = self.system.iter().rev().filter(|_| setting == Setting::JobPath);
        let property = properties.find(|(name, ..)| name == JOB_PATH);
        property.map(|(_, value, origin)| (value.clone(), origin.clone()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The effective settings.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The values as they were given, in the order of `Setting::ALL`.
    values: Vec<(String, Origin)>,
    /// System properties by name.
    system: BTreeMap<String, (String, Origin)>,
    pub(crate) repository: RepositoryUrl,
    pub(crate) repository_time_zone: TimeZone,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) stop_timeout: Duration,
    pub(crate) lease_time: Duration,
    pub(crate) progress_interval: Duration,
    pub(crate) crash_limit: u32,
    pub(crate) partition_threads: Option<NonZeroUsize>,
    pub(crate) metrics_port: Option<Address>,
    pub(crate) log: LevelFilter,
    pub(crate) log_format: LogFormat,
    /// The dialect of all job files; `None` takes it from each file.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) databases: Vec<DatabaseSettings>,
    pub(crate) targets: Vec<TargetSettings>,
    pub(crate) console: ConsoleSettings,
    /// True if the program embeds jobs, and so has no default job path.
    embeds_jobs: bool,
}

impl Settings {
    /// Merges all sources and validates every value, also those that the command does not use. `file` is the settings file
    /// that an argument names.
    ///
    /// # Errors
    /// All invalid values, each with its origin.
    pub(crate) fn load(arguments: Source, file: Option<&Path>, program: Source) -> Result<Self, CliError> {
        let mut problems = Vec::new();
        let file = file::read(file, &mut problems);
        let value = |&setting: &Setting| {
            let given = arguments.get(setting);
            given
                .or_else(|| from_environment(setting, &mut problems))
                .or_else(|| file.get(setting))
                .or_else(|| program.get(setting))
                .unwrap_or_else(|| (setting.default().to_owned(), Origin::Default))
        };
        let values = Setting::ALL.iter().map(value).collect();
        let embeds_jobs = program.embeds_jobs;
        let system = [program.system, file.system, arguments.system];
        let system = system.into_iter().flatten();
        let system = system.map(|(name, value, origin)| (name, (value, origin)));
        match Self::parse(values, system.collect(), &mut problems) {
            Some(settings) if problems.is_empty() => Ok(Self {
                databases: file.databases,
                targets: file.targets,
                console: file.console,
                embeds_jobs,
                ..settings
            }),
            _ => Err(CliError::Settings(problems)),
        }
    }

    /// Returns the settings of a settings file alone.
    ///
    /// # Errors
    /// All mistakes in it.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of_file(path: &Path, text: &str) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let file = file::parse(path, text, &mut problems);
        let default = |setting: Setting| (setting.default().to_owned(), Origin::Default);
        let value = |&setting: &Setting| file.get(setting).unwrap_or_else(|| default(setting));
        let values = Setting::ALL.iter().map(value).collect();
        let system = file.system.iter().cloned();
        let system = system.map(|(name, value, origin)| (name, (value, origin)));
        match Self::parse(values, system.collect(), &mut problems) {
            Some(settings) if problems.is_empty() => Ok(Self {
                databases: file.databases,
                targets: file.targets,
                console: file.console,
                ..settings
            }),
            _ => Err(problems),
        }
    }

    /// Parses all values, in the order of `Setting::ALL`. `None` if one of them is invalid.
    fn parse(
        values: Vec<(String, Origin)>,
        system: BTreeMap<String, (String, Origin)>,
        problems: &mut Vec<String>,
    ) -> Option<Self> {
        let mut parser = Parser {
            values: &values,
            problems,
        };
        let repository = parser.result(Setting::Repository, |text| text.parse::<RepositoryUrl>());
        let job_path = parser.value(Setting::JobPath, "directories, as for --job-path", |text| {
            (!text.is_empty()).then_some(())
        });
        let shutdown_timeout = parser.seconds(Setting::ShutdownTimeout);
        let stop_timeout = parser.seconds(Setting::StopTimeout);
        let lease_time = parser.seconds(Setting::LeaseTime);
        let partition_threads = parser.optional(Setting::PartitionThreads, "a whole number, at least 1");
        let log = parser.log();
        let log_format = parser.log_format();
        let metrics_port = parser.optional(
            Setting::MetricsPort,
            "a port from 0 to 65535, or an IP address with a port, such as `0.0.0.0:9464`",
        );
        let crash_limit = parser.value(Setting::CrashLimit, "a whole number", |text| text.parse().ok());
        let repository_time_zone =
            parser.result(Setting::RepositoryTimeZone, |text| text.parse::<TimeZone>());
        let progress_interval = parser.seconds(Setting::ProgressInterval);
        let dialect = parser.optional(Setting::Dialect, "`draft` or `jakarta`");
        let dispatch = parser.value(
            Setting::Dispatch,
            "`local`, `repository`, or an address such as `nats://host`",
            |text| (!text.is_empty()).then_some(()),
        );
        job_path?;
        dispatch?;
        Some(Self {
            repository: repository?,
            repository_time_zone: repository_time_zone?,
            shutdown_timeout: shutdown_timeout?,
            stop_timeout: stop_timeout?,
            lease_time: lease_time?,
            progress_interval: progress_interval?,
            crash_limit: crash_limit?,
            partition_threads: partition_threads?,
            metrics_port: metrics_port?,
            log: log?,
            log_format: log_format?,
            dialect: dialect?,
            databases: Vec::new(),
            targets: Vec::new(),
            console: ConsoleSettings::default(),
            embeds_jobs: false,
            values,
            system,
        })
    }

    /// Returns a value as it was given, and its origin.
    pub(crate) fn get(&self, setting: Setting) -> (&str, &Origin) {
        let (value, origin) = &self.values[setting as usize];
        (value, origin)
    }

    pub(crate) fn system_properties(&self) -> impl Iterator<Item = (&str, &str)> {
        self.system
            .iter()
            .map(|(name, (value, _))| (name.as_str(), value.as_str()))
    }

    /// Returns key, value and origin of every setting and system property, without passwords.
    pub(crate) fn describe(&self) -> Vec<[String; 3]> {
        let settings = Setting::ALL.iter().map(|&setting| {
            let (value, origin) = self.get(setting);
            let value = match setting {
                Setting::Repository => self.repository.to_string(),
                Setting::Dispatch => redact(value),
                Setting::JobPath if self.embeds_jobs && *origin == Origin::Default => {
                    "none: the program embeds its jobs".into()
                }
                Setting::Dialect if value.is_empty() => "that of each file".into(),
                Setting::PartitionThreads if value.is_empty() => "4 for each processor".into(),
                Setting::MetricsPort if value.is_empty() => "none".into(),
                _ => value.to_owned(),
            };
            [setting.key().to_owned(), value, origin.to_string()]
        });
        let properties = self.system.iter().map(|(name, (value, origin))| {
            let value = if names_secret(name) { "***" } else { value };
            [
                format!("{}.{name}", file::SYSTEM),
                value.to_owned(),
                origin.to_string(),
            ]
        });
        let databases = self.databases.iter().map(|database| {
            [
                format!("{}.{}", file::DATABASES, database.name),
                database.shown(),
                database.origin.to_string(),
            ]
        });
        let targets = self.targets.iter().map(|target| {
            [
                format!("{}.{}", file::NOTIFY, target.name),
                target.shown(),
                target.origin.to_string(),
            ]
        });
        let console = self.console.describe();
        settings
            .chain(properties)
            .chain(databases)
            .chain(targets)
            .chain(console)
            .collect()
    }
}

/// Parses values and collects the problems.
struct Parser<'a> {
    values: &'a [(String, Origin)],
    problems: &'a mut Vec<String>,
}

impl Parser<'_> {
    /// Parses a value with a function whose error describes the expected value.
    fn result<T, E: fmt::Display>(
        &mut self,
        setting: Setting,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let (text, origin) = &self.values[setting as usize];
        parse(text)
            .map_err(|error| self.problems.push(format!("{origin}: {error}")))
            .ok()
    }

    fn value<T>(
        &mut self,
        setting: Setting,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.result(setting, |text| {
            parse(text).ok_or_else(|| format!("invalid value `{text}`: expected {expected}"))
        })
    }

    /// Parses a value that may be empty.
    fn optional<T: std::str::FromStr>(&mut self, setting: Setting, expected: &str) -> Option<Option<T>> {
        self.value(setting, expected, |text| match text {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        })
    }

    fn seconds(&mut self, setting: Setting) -> Option<Duration> {
        // A lease of 0 seconds would expire before it protects anything.
        let (least, expected) = match setting {
            Setting::LeaseTime => (1, "a whole number of seconds, at least 1"),
            _ => (0, "a whole number of seconds"),
        };
        self.value(setting, expected, |text| {
            let seconds = text.parse().ok().filter(|seconds| *seconds >= least);
            seconds.map(Duration::from_secs)
        })
    }

    fn log(&mut self) -> Option<LevelFilter> {
        const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
        self.value(Setting::Log, "off, error, warn, info, debug or trace", |text| {
            LEVELS.iter().find(|level| **level == text)?.parse().ok()
        })
    }

    fn log_format(&mut self) -> Option<LogFormat> {
        self.value(Setting::LogFormat, "text or json", |text| match text {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            _ => None,
        })
    }
}

fn from_environment(setting: Setting, problems: &mut Vec<String>) -> Option<(String, Origin)> {
    let origin = Origin::Environment(setting.variable());
    match env::var(setting.variable()) {
        Ok(value) => Some((value, origin)),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => {
            // Without the value, which may hold a password.
            problems.push(format!("{origin}: the value is not UTF-8"));
            None
        }
    }
}

fn names_secret(property: &str) -> bool {
    let name = property.to_ascii_lowercase();
    let words = ["password", "secret", "token"];
    words.iter().any(|word| name.contains(word))
}

/// Warns about environment variables that nearly match a setting. Others with the prefix may belong to another program.
pub(crate) fn warn_of_misspelt_variables() {
    let known = || {
        let variables = Setting::ALL.iter().map(|setting| setting.variable());
        // Without the prefix, which would make all names alike.
        variables
            .chain([file::VARIABLE])
            .filter_map(|variable| variable.strip_prefix(PREFIX))
    };
    let mut names: Vec<String> = env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .collect();
    names.sort();
    for name in names {
        let rest = name.strip_prefix(PREFIX);
        let unknown = rest.filter(|rest| known().all(|known| known != *rest));
        if let Some(near) = unknown.and_then(|rest| nearest(rest, known())) {
            errln!("warning: environment variable {name} is ignored; did you mean {PREFIX}{near}?");
        }
    }
}
