//! What the command line is set to, and by whom: arguments before the environment, before `batch.toml`, before the program,
//! before the defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use batch_xml::suggest::nearest;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::logging;
use super::output::{Table, print_json};
use super::print::err;
use crate::repository::{check_url, shown_url};
use crate::time_zone::{TimeZone, TimeZoneError};

/// The file that is read when it is there and no other is named.
const FILE: &str = "batch.toml";
/// What names another file.
const FILE_ARGUMENT: &str = "--config";
const FILE_VARIABLE: &str = "BATCH_CONFIG";
/// What the names of all variables begin with.
const PREFIX: &str = "BATCH_";
/// The table of system properties in the file.
const SYSTEM: &str = "system-properties";

/// The system property of the job path. Spec: PATH-02
const JOB_PATH: &str = "javax.jobpath";

/// One thing that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Repository,
    JobPath,
    ShutdownTimeout,
    StopTimeout,
    LeaseTime,
    PartitionThreads,
    Log,
    LogFormat,
    MetricsPort,
    CrashLimit,
    RepositoryTimeZone,
    ProgressInterval,
}

/// The key in the file, the environment variable, the default.
type Row = (Setting, &'static str, &'static str, &'static str);

const SETTINGS: [Row; 12] = [
    (
        Setting::Repository,
        "repository",
        "BATCH_REPOSITORY",
        "sqlite://batch.db",
    ),
    (Setting::JobPath, "job-path", "BATCH_JOB_PATH", "."),
    (
        Setting::ShutdownTimeout,
        "shutdown-timeout",
        "BATCH_SHUTDOWN_TIMEOUT",
        "30",
    ),
    (Setting::StopTimeout, "stop-timeout", "BATCH_STOP_TIMEOUT", "5"),
    (Setting::LeaseTime, "lease-time", "BATCH_LEASE_TIME", "30"),
    (
        Setting::PartitionThreads,
        "partition-threads",
        "BATCH_PARTITION_THREADS",
        "",
    ),
    (Setting::Log, "log", "BATCH_LOG", "warn"),
    (Setting::LogFormat, "log-format", "BATCH_LOG_FORMAT", "text"),
    (Setting::MetricsPort, "metrics-port", "BATCH_METRICS_PORT", ""),
    (Setting::CrashLimit, "crash-limit", "BATCH_CRASH_LIMIT", "3"),
    (
        Setting::RepositoryTimeZone,
        "repository-time-zone",
        "BATCH_REPOSITORY_TIME_ZONE",
        "UTC",
    ),
    (
        Setting::ProgressInterval,
        "progress-interval",
        "BATCH_PROGRESS_INTERVAL",
        "10",
    ),
];

/// Who set something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Argument(&'static str),
    Environment(&'static str),
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

/// What is in effect.
#[derive(Debug)]
pub(super) struct Config {
    settings: Vec<(Setting, String, Origin)>,
    /// System properties by name.
    system: BTreeMap<String, (String, Origin)>,
}

/// What arguments or the program say.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) settings: Vec<(Setting, String, Origin)>,
    pub(super) system: Vec<(String, String, Origin)>,
}

impl Given {
    /// The job path, which also a system property may say.
    fn with_job_path(mut self) -> Self {
        let mut properties = self.system.iter().rev();
        let path = properties.find(|(name, ..)| name == JOB_PATH).cloned();
        self.settings
            .extend(path.map(|(_, value, origin)| (Setting::JobPath, value, origin)));
        self
    }

    pub(super) fn set(&mut self, setting: Setting, value: Option<String>, origin: Origin) {
        self.settings.extend(value.map(|value| (setting, value, origin)));
    }
}

impl Config {
    /// Puts everything together. `file` is one that was asked for, and has to exist.
    ///
    /// # Errors
    /// All values that cannot be used, each with who says it, as the lines of one message.
    pub(super) fn of(arguments: Given, file: Option<&Path>, program: Given) -> Result<Self, String> {
        let mut problems = Vec::new();
        let of_file = of_file(file, &mut problems);
        let [arguments, of_file, program] = [arguments, of_file, program].map(Given::with_job_path);
        let environment = |name: &'static str| match std::env::var(name) {
            Ok(value) => Ok(Some((value, Origin::Environment(name)))),
            Err(std::env::VarError::NotPresent) => Ok(None),
            // Without the value: it may hold a password.
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(format!("{}: the value is not UTF-8", Origin::Environment(name)))
            }
        };
        let find = |given: &Given, setting| {
            let found = given.settings.iter().find(|(of, ..)| *of == setting);
            found.map(|(_, value, origin)| (value.clone(), origin.clone()))
        };
        let mut settings = Vec::new();
        for (setting, _, variable, default) in SETTINGS {
            let of_process =
                find(&arguments, setting).map_or_else(|| environment(variable), |it| Ok(Some(it)));
            let (value, origin) = of_process
                .unwrap_or_else(|problem| {
                    problems.push(problem);
                    None
                })
                .or_else(|| find(&of_file, setting))
                .or_else(|| find(&program, setting))
                .unwrap_or_else(|| (default.to_owned(), Origin::Default));
            settings.push((setting, value, origin));
        }
        let system = [program.system, of_file.system, arguments.system];
        let by_name = system
            .into_iter()
            .flatten()
            .map(|(name, value, origin)| (name, (value, origin)));
        let config = Self {
            settings,
            system: by_name.collect(),
        };
        problems.extend(
            SETTINGS
                .iter()
                .filter_map(|(setting, ..)| config.check(*setting).err()),
        );
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(problems.join("\nerror: "))
        }
    }

    /// Whether the value can be used, also where the verb does not ask for it: a mistake in it is one of tomorrow.
    fn check(&self, setting: Setting) -> Result<(), String> {
        let (value, origin) = self.get(setting);
        match setting {
            Setting::Repository => check_url(value).map_err(|error| format!("{origin}: {error}")),
            Setting::JobPath if value.is_empty() => Err(format!(
                "{origin}: no directory is named; expected DIRS as of `--job-path`"
            )),
            Setting::JobPath => Ok(()),
            Setting::ShutdownTimeout
            | Setting::StopTimeout
            | Setting::LeaseTime
            | Setting::ProgressInterval => self.seconds(setting).map(drop),
            Setting::PartitionThreads => self.number(setting).map(drop),
            Setting::CrashLimit => self.count(setting).map(drop),
            Setting::Log => logging::level(self).map(drop),
            Setting::LogFormat => logging::format(self).map(drop),
            Setting::MetricsPort => self.port().map(drop),
            Setting::RepositoryTimeZone => self.time_zone().map(drop),
        }
    }

    pub(super) fn get(&self, setting: Setting) -> (&str, &Origin) {
        let found = self.settings.iter().find(|(of, ..)| *of == setting);
        found.map_or(("", &Origin::Default), |(_, value, origin)| (value, origin))
    }

    pub(super) fn system(&self) -> impl Iterator<Item = (&str, &str)> {
        self.system
            .iter()
            .map(|(name, (value, _))| (name.as_str(), value.as_str()))
    }

    pub(super) fn seconds(&self, setting: Setting) -> Result<Duration, String> {
        let (value, origin) = self.get(setting);
        // A lease that ends at once protects nobody.
        let (least, from) = match setting {
            Setting::LeaseTime => (1, " from 1"),
            _ => (0, ""),
        };
        match value.parse() {
            Ok(seconds) if seconds >= least => Ok(Duration::from_secs(seconds)),
            _ => Err(format!(
                "{origin}: {value:?} is not a whole number of seconds{from}"
            )),
        }
    }

    /// The port of the metrics. `None`: nobody says it.
    pub(super) fn port(&self) -> Result<Option<u16>, String> {
        let (value, origin) = self.get(Setting::MetricsPort);
        if value.is_empty() {
            return Ok(None);
        }
        let port = value.parse().map(Some);
        port.map_err(|_| format!("{origin}: {value:?} is not a port from 0 to 65535"))
    }

    /// `None`: nobody says it.
    pub(super) fn number(&self, setting: Setting) -> Result<Option<usize>, String> {
        let (value, origin) = self.get(setting);
        if value.is_empty() {
            return Ok(None);
        }
        match value.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("{origin}: {value:?} is not a number from 1")),
        }
    }

    /// A number, or 0.
    pub(super) fn count(&self, setting: Setting) -> Result<u32, String> {
        let (value, origin) = self.get(setting);
        let number = value.parse();
        number.map_err(|_| format!("{origin}: {value:?} is not a number from 0"))
    }

    pub(super) fn time_zone(&self) -> Result<TimeZone, String> {
        let (value, origin) = self.get(Setting::RepositoryTimeZone);
        let zone = value.parse();
        zone.map_err(|error: TimeZoneError| format!("{origin}: {error}"))
    }

    /// One of the words that are possible.
    pub(super) fn word<T: Copy>(&self, setting: Setting, words: &[(&str, T)]) -> Result<T, String> {
        let (value, origin) = self.get(setting);
        let found = words.iter().find(|(word, _)| *word == value);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("{origin}: {value:?} is none of {}", words.join(", "))
        })
    }

    /// `config show`
    pub(super) fn show(&self, as_json: bool) {
        let rows: Vec<(String, String, String)> = SETTINGS
            .iter()
            .map(|(setting, key, _, _)| {
                let (value, origin) = self.get(*setting);
                let value = match setting {
                    Setting::Repository => shown_url(value),
                    Setting::PartitionThreads if value.is_empty() => "4 for each processor".into(),
                    Setting::MetricsPort if value.is_empty() => "none".into(),
                    _ => value.to_owned(),
                };
                ((*key).to_owned(), value, origin.to_string())
            })
            .chain(self.system.iter().map(|(name, (value, origin))| {
                (
                    format!("{SYSTEM}.{name}"),
                    shown_property(name, value),
                    origin.to_string(),
                )
            }))
            .collect();
        if as_json {
            let all = rows
                .iter()
                .map(|(key, value, origin)| json!({ "key": key, "value": value, "from": origin }));
            print_json(&Value::Array(all.collect()));
            return;
        }
        let mut table = Table::new(&["KEY", "VALUE", "FROM"]);
        for (key, value, origin) in rows {
            table.row([key, value, origin]);
        }
        table.print();
    }
}

/// The value, unless the name says that it is a secret.
fn shown_property(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    let is_secret = ["password", "secret", "token"]
        .iter()
        .any(|word| name.contains(word));
    if is_secret {
        "***".to_owned()
    } else {
        value.to_owned()
    }
}

/// Tells of each variable of the environment that is much like one of ours, which nobody reads and nobody would miss. Those
/// that are like none may be of another program.
pub(super) fn warn_of_misspelt_variables() {
    let ours = || {
        let variables = SETTINGS.iter().map(|(_, _, variable, _)| *variable);
        // Without what all have in common: the beginning makes no two names alike.
        let named = variables.chain([FILE_VARIABLE]);
        named.filter_map(|variable| variable.strip_prefix(PREFIX))
    };
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .collect();
    names.sort();
    for name in names {
        let rest = name.strip_prefix(PREFIX);
        let unknown = rest.filter(|rest| ours().all(|known| known != *rest));
        if let Some(near) = unknown.and_then(|rest| nearest(rest, ours())) {
            err(format_args!(
                "warning: environment variable {name} is not read; did you mean {PREFIX}{near}?"
            ));
        }
    }
}

/// What the file says: the one that is asked for, or the usual one if there is one.
fn of_file(asked: Option<&Path>, problems: &mut Vec<String>) -> Given {
    let variable = std::env::var_os(FILE_VARIABLE);
    let (path, origin) = match (asked, &variable) {
        (Some(path), _) => (path, Some(Origin::Argument(FILE_ARGUMENT))),
        (None, Some(name)) => (Path::new(name), Some(Origin::Environment(FILE_VARIABLE))),
        (None, None) => (Path::new(FILE), None),
    };
    let problem = match (fs::read_to_string(path), origin) {
        (Ok(text), _) => {
            let path = path.to_owned();
            return File { path, text: &text }.read(problems);
        }
        (Err(error), None) if error.kind() == ErrorKind::NotFound => return Given::default(),
        (Err(_), Some(origin)) if path.as_os_str().is_empty() => {
            format!("{origin}: no file is named; expected the path of one like `{FILE}`")
        }
        (Err(error), Some(origin)) => format!("{origin}: cannot read `{}`: {error}", path.display()),
        (Err(error), None) => format!("cannot read `{FILE}`: {error}"),
    };
    problems.push(problem);
    Given::default()
}

struct File<'a> {
    path: PathBuf,
    text: &'a str,
}

impl File<'_> {
    fn read(&self, problems: &mut Vec<String>) -> Given {
        let mut given = Given::default();
        match DeTable::parse(self.text) {
            Ok(table) => {
                let results = table
                    .get_ref()
                    .iter()
                    .map(|(key, value)| self.entry(key, value, &mut given));
                problems.extend(results.filter_map(Result::err));
            }
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                problems.push(format!("{}: {}", self.place(at), error.message()));
            }
        }
        given
    }

    fn entry(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        given: &mut Given,
    ) -> Result<(), String> {
        let name = key.get_ref().as_ref();
        if name == SYSTEM {
            return self.system(value, given);
        }
        let keys = SETTINGS.iter().map(|(_, key, ..)| *key).chain([SYSTEM]);
        let Some((setting, ..)) = SETTINGS.iter().find(|(_, key, ..)| *key == name) else {
            let help = match nearest(name, keys.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", keys.collect::<Vec<_>>().join(", ")),
            };
            return Err(format!(
                "{}: there is no setting `{name}`; {help}",
                self.place(key.span().start)
            ));
        };
        given.set(*setting, Some(self.text_of(name, value)?), self.origin(key));
        Ok(())
    }

    fn system(&self, table: &Spanned<DeValue<'_>>, given: &mut Given) -> Result<(), String> {
        let DeValue::Table(properties) = table.get_ref() else {
            return Err(format!(
                "{}: `{SYSTEM}` is not a table",
                self.place(table.span().start)
            ));
        };
        for (key, value) in properties {
            let name = key.get_ref().to_string();
            let value = self.text_of(&name, value)?;
            given.system.push((name, value, self.origin(key)));
        }
        Ok(())
    }

    fn text_of(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<String, String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number.to_string()),
            DeValue::Boolean(truth) => Ok(truth.to_string()),
            _ => Err(format!(
                "{}: the value of `{name}` is neither a text nor a whole number",
                self.place(value.span().start)
            )),
        }
    }

    fn origin<T>(&self, at: &Spanned<T>) -> Origin {
        Origin::File(self.place(at.span().start))
    }

    /// File and line.
    fn place(&self, byte: usize) -> String {
        let before = self.text.get(..byte).unwrap_or(self.text);
        format!("{}:{}", self.path.display(), before.matches('\n').count() + 1)
    }
}
