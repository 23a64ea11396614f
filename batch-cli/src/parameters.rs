//! Job parameters as arguments: `name=value`, `name(type)=value`, `-name=value`, `@file`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use batch_runtime::JobParameters;
use batch_runtime::parameters::NamedParameter;
use batch_runtime::xml::is_unprintable;
use clap::Args;

use crate::error::CliError;
use crate::print::printable;

#[derive(Args, Debug, Default)]
pub(crate) struct Parameters {
    /// Job parameters: NAME=VALUE, NAME(long)=5, NAME(double)=1.5, NAME(date)=2026-11-20, in the layouts of Spring Batch 5 and 6 also
    /// NAME(CLASS)=VALUE with a class of Java; NAME(secret)=env:VARIABLE or
    /// NAME(secret)=file:PATH for values that must not be stored; -NAME=VALUE does not identify the instance; @FILE holds one
    /// parameter on each line, whose value may be a JSON string in double quotes
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<Argument>,
}

#[derive(Clone, Debug)]
enum Argument {
    Parameter(NamedParameter),
    File(PathBuf),
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix('@') {
            return Ok(Self::File(file.into()));
        }
        text.parse().map(Self::Parameter)
    }
}

/// Puts a space before each parameter that begins with `-`, which clap would take for an option.
pub(crate) fn escaped(arguments: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    arguments.into_iter().map(|argument| {
        let is_parameter = argument.to_str().is_some_and(|text| {
            let name = text.split_once('=').map_or("", |(name, _)| name);
            name.len() > "-o".len()
                && name.starts_with('-')
                && !name.starts_with("--")
                && !name.starts_with("-D")
        });
        if !is_parameter {
            return argument;
        }
        let mut escaped = OsString::from(" ");
        escaped.push(argument);
        escaped
    })
}

/// Fails if `-Dname=value` sets a system property `name`, where the job uses a parameter `Dname`: that is written after `--`.
///
/// # Errors
/// With both ways to write it.
pub(crate) fn check_properties(
    arguments: impl IntoIterator<Item = OsString>,
    known: impl FnOnce() -> BTreeSet<String>,
) -> Result<(), CliError> {
    let options = arguments.into_iter().take_while(|argument| argument != "--");
    let names: Vec<String> = options
        .filter_map(|argument| {
            let (name, _) = argument.to_str()?.strip_prefix("-D")?.split_once('=')?;
            (!name.is_empty()).then(|| name.to_owned())
        })
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let known = known();
    let meant = |name: &&String| known.contains(&format!("D{name}")) && !known.contains(*name);
    match names.iter().find(meant) {
        None => Ok(()),
        Some(name) => Err(CliError::PropertyOrParameter(name.clone())),
    }
}

impl Parameters {
    /// Returns the parameters of the arguments and of the files that they name.
    ///
    /// # Errors
    /// If a name is given twice, or a file cannot be used.
    pub(crate) fn into_parameters(self) -> Result<JobParameters, CliError> {
        let mut all = Vec::new();
        for argument in self.arguments {
            match argument {
                Argument::Parameter(parameter) => all.push(parameter),
                Argument::File(path) => all.extend(read_file(&path)?),
            }
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = all.iter().find(|one| !names.insert(&one.name)) {
            return Err(CliError::ParameterTwice(twice.name.clone()));
        }
        Ok(all.into_iter().collect())
    }
}

/// The byte-order mark at the beginning of a file, which is no content.
pub(crate) const MARK: char = '\u{feff}';

/// Reads one parameter from each line, except empty lines and those that begin with `#`.
fn read_file(path: &Path) -> Result<Vec<NamedParameter>, CliError> {
    let text = fs::read_to_string(path).map_err(CliError::file("read the parameter file", path))?;
    let text = text.strip_prefix(MARK).unwrap_or(&text);
    let lines = (1..).zip(text.lines().map(str::trim));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            of_line(line).map_err(|problem| CliError::ParameterFile {
                place: format!("{}:{number}", path.display()),
                problem,
            })
        })
        .collect()
}

/// Parses a line of a file. Spaces around the `=` are ignored, and a value in double quotes is a JSON string.
fn of_line(line: &str) -> Result<NamedParameter, String> {
    let Some((name, value)) = line.split_once('=') else {
        return line.parse();
    };
    let (name, value) = (name.trim_end(), value.trim_start());
    if !(value.len() > 1 && value.starts_with('"') && value.ends_with('"')) {
        return format!("{name}={value}").parse();
    }
    let value: String = serde_json::from_str(value)
        .map_err(|error| format!("the value in double quotes is not a JSON string: {error}"))?;
    format!("{name}={value}").parse()
}

/// Returns a parameter as a line of a file that is read again as the same parameter; `None` if its name prevents that.
pub(crate) fn to_line(parameter: &NamedParameter) -> Option<String> {
    let text = parameter.to_string();
    let is_same = |line: &String| {
        !line.contains(['\n', '\r'])
            && !line.starts_with(['#', '@'])
            && line.trim() == line
            && of_line(line).as_ref() == Ok(parameter)
    };
    let (name, value) = text.split_once('=')?;
    let quoted = || format!("{name}={}", quoted(value));
    Some(text.clone())
        .filter(|line| printable(line) == *line)
        .filter(is_same)
        .or_else(|| Some(quoted()).filter(is_same))
}

/// Returns a JSON string without characters that a terminal would interpret.
fn quoted(value: &str) -> String {
    let json = serde_json::Value::from(value).to_string();
    let escape = |c: char| match is_unprintable(c) {
        true => c
            .encode_utf16(&mut [0; 2])
            .iter()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect(),
        false => c.to_string(),
    };
    json.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use batch_runtime::ParameterValue;
    use batch_runtime::parameters::JobParameter;

    use super::*;

    /// What `params` prints is read again as the same parameter, for any value.
    // Spec: LOSS-16
    #[test]
    fn a_parameter_survives_a_file() {
        let values = [
            "plain",
            "",
            " ",
            "ends with a blank ",
            "\t",
            "two\nlines",
            "\r\n",
            "\"",
            "\"quoted\"",
            "back\\slash",
            "a=b",
            "\u{202e}x",
            "\u{1}",
            "\u{feff}",
            "é😀",
            "#no comment",
            "@no file",
            "{\"a\":1}",
            "\"a\" \"b\"",
        ];
        for value in values {
            for identifying in [true, false] {
                let parameter = NamedParameter {
                    name: "note".to_owned(),
                    parameter: JobParameter {
                        value: ParameterValue::String(value.to_owned()),
                        identifying,
                    },
                };
                let line = to_line(&parameter).unwrap();
                assert_eq!(of_line(line.trim()).unwrap(), parameter, "{line}");
                assert_eq!(printable(&line), line);
            }
        }
        let odd = |name: &str| to_line(&format!("{name}=1").parse().unwrap());
        assert_eq!(odd("#note"), None);
        assert_eq!(odd("note").as_deref(), Some("note=1"));
    }

    // Spec: LOSS-16
    #[test]
    fn a_parameter_is_not_taken_for_a_property() {
        let check = |arguments: &str, known: &[&str]| {
            let arguments = arguments.split(' ').map(OsString::from);
            check_properties(arguments, || {
                known.iter().map(|name| (*name).to_owned()).collect()
            })
        };
        let error = check("launch def -Date=1", &["Date"]).unwrap_err().to_string();
        assert!(
            error.contains("`-- -Date=1`") && error.contains("`-D ate=1`"),
            "{error}"
        );
        for accepted in [
            "launch def -Dates=1",
            "launch def -D ate=1",
            "launch def -- -Date=1",
            "launch def Date=1",
        ] {
            assert!(check(accepted, &["Date"]).is_ok(), "{accepted}");
        }
        assert!(check("launch def -Data=1", &["Data", "ata"]).is_ok());
    }

    #[test]
    fn only_parameters_are_escaped() {
        let check = |argument: &str, expected: &str| {
            let escaped: Vec<OsString> = escaped([OsString::from(argument)]).collect();
            assert_eq!(escaped, [expected]);
        };
        check("-note=x", " -note=x");
        for argument in "p launch -Da=b --json -o=f -h n=-5 --log=info".split(' ') {
            check(argument, argument);
        }
    }
}
