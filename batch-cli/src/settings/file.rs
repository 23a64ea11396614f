//! The settings file `batch.toml`.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use batch_runtime::xml::suggest::nearest;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{Origin, Setting, Source};
use crate::parameters::MARK;

/// The file that is read if it exists and no other is named.
const FILE: &str = "batch.toml";
/// The environment variable that names another file.
pub(super) const VARIABLE: &str = "BATCH_CONFIG";
/// The table of system properties.
pub(super) const SYSTEM: &str = "system-properties";
/// The table of notification targets.
pub(super) const NOTIFY: &str = "notify";
/// The table of databases beside the repository.
pub(super) const DATABASES: &str = "databases";
/// The table of the console.
pub(super) const CONSOLE: &str = "console";

/// Reads the file that `argument` or the environment names, or else `batch.toml` if it exists.
pub(super) fn read(argument: Option<&Path>, problems: &mut Vec<String>) -> Source {
    let variable = env::var_os(VARIABLE);
    let (path, origin) = match (argument, &variable) {
        (Some(path), _) => (path, Some(Origin::Argument("--config".into()))),
        (None, Some(name)) => (Path::new(name), Some(Origin::Environment(VARIABLE))),
        (None, None) => (Path::new(FILE), None),
    };
    let problem = match (fs::read_to_string(path), origin) {
        (Ok(text), _) => {
            let text = text.strip_prefix(MARK).unwrap_or(&text);
            return File { path, text }.read(problems);
        }
        (Err(error), None) if error.kind() == ErrorKind::NotFound => return Source::default(),
        (Err(_), Some(origin)) if path.as_os_str().is_empty() => {
            format!("{origin}: invalid value ``: expected the path of a settings file, such as `{FILE}`")
        }
        (Err(error), Some(origin)) => format!("{origin}: cannot read `{}`: {error}", path.display()),
        (Err(error), None) => format!("cannot read `{FILE}`: {error}"),
    };
    problems.push(problem);
    Source::default()
}

/// Reads a text as the file at a path.
#[cfg(any(test, fuzzing))]
pub(super) fn parse(path: &Path, text: &str, problems: &mut Vec<String>) -> Source {
    File { path, text }.read(problems)
}

pub(super) struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn read(&self, problems: &mut Vec<String>) -> Source {
        let mut source = Source::default();
        match DeTable::parse(self.text) {
            Ok(table) => {
                for (key, value) in table.get_ref() {
                    let entry = self.entry(key, value, &mut source, problems);
                    problems.extend(entry.err());
                }
            }
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                problems.push(format!("{}: {}", self.place(at), error.message()));
            }
        }
        source
    }

    fn entry(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        source: &mut Source,
        problems: &mut Vec<String>,
    ) -> Result<(), String> {
        let name = key.get_ref().as_ref();
        if name == SYSTEM {
            return self.system(value, source);
        }
        if name == NOTIFY {
            source.targets = self.targets(value, problems);
            return Ok(());
        }
        if name == DATABASES {
            source.databases = self.databases(value, problems);
            return Ok(());
        }
        if name == CONSOLE {
            source.console = self.console(value, problems);
            return Ok(());
        }
        let mut settings = Setting::ALL.iter();
        let Some(setting) = settings.find(|setting| setting.key() == name) else {
            let keys = Setting::ALL
                .iter()
                .map(|setting| setting.key())
                .chain([SYSTEM, DATABASES, NOTIFY, CONSOLE]);
            let help = match nearest(name, keys.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected one of {}", keys.collect::<Vec<_>>().join(", ")),
            };
            let place = self.place(key.span().start);
            return Err(format!("{place}: unknown setting `{name}`; {help}"));
        };
        source.set(*setting, Some(self.text_of(name, value)?), self.origin(key));
        Ok(())
    }

    fn system(&self, table: &Spanned<DeValue<'_>>, source: &mut Source) -> Result<(), String> {
        let DeValue::Table(properties) = table.get_ref() else {
            let place = self.place(table.span().start);
            return Err(format!("{place}: `{SYSTEM}` is not a table"));
        };
        for (key, value) in properties {
            let name = key.get_ref().to_string();
            let value = self.text_of(&name, value)?;
            source.system.push((name, value, self.origin(key)));
        }
        Ok(())
    }

    pub(super) fn text_of(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<String, String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number.to_string()),
            DeValue::Boolean(truth) => Ok(truth.to_string()),
            _ => {
                let place = self.place(value.span().start);
                Err(format!(
                    "{place}: invalid value for `{name}`: expected a string or a whole number"
                ))
            }
        }
    }

    pub(super) fn origin<T>(&self, at: &Spanned<T>) -> Origin {
        Origin::File(self.place(at.span().start))
    }

    /// Returns file and line of a byte.
    pub(super) fn place(&self, byte: usize) -> String {
        let before = self.text.get(..byte).unwrap_or(self.text);
        format!("{}:{}", self.path.display(), before.matches('\n').count() + 1)
    }
}
