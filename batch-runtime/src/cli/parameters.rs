//! Job parameters as they are written on the command line: `name=value`, `name(type)=value`, `-name=value`, `@file`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::parameters::{JobParameter, JobParameters, ParameterValue};

#[derive(Args, Debug)]
pub(super) struct Parameters {
    /// Job parameters: NAME=VALUE, NAME(long)=5, NAME(double)=1.5, NAME(date)=2026-11-20; NAME(secret)=env:VARIABLE or
    /// NAME(secret)=file:PATH for what must not be stored; -NAME=VALUE is no part of the instance's identity; @FILE holds one on
    /// each line
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<Argument>,
}

#[derive(Clone, Debug)]
enum Argument {
    Parameter(String, JobParameter),
    File(PathBuf),
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix('@') {
            return Ok(Self::File(file.into()));
        }
        parameter(text).map(|(name, parameter)| Self::Parameter(name, parameter))
    }
}

/// The arguments of the process, for clap: a parameter that begins with `-` would be an option to it, and after a space it
/// is not.
pub(super) fn shielded(arguments: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
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
        let mut shielded = OsString::from(" ");
        shielded.push(argument);
        shielded
    })
}

impl Parameters {
    /// # Errors
    /// When a name is given twice, or a file cannot be used.
    pub(super) fn into_parameters(self) -> Result<JobParameters, String> {
        let mut all = Vec::new();
        for argument in self.arguments {
            match argument {
                Argument::Parameter(name, parameter) => all.push((name, parameter)),
                Argument::File(path) => all.extend(of_file(&path)?),
            }
        }
        let mut names = BTreeSet::new();
        if let Some((twice, _)) = all.iter().find(|(name, _)| !names.insert(name)) {
            return Err(format!("parameter `{twice}` is given twice"));
        }
        Ok(all
            .into_iter()
            .fold(JobParameters::new(), |parameters, (name, one)| {
                parameters.with_parameter(name, one.value, one.identifying)
            }))
    }
}

/// Empty lines and those that begin with `#` say nothing; blanks around the `=` do not count.
fn of_file(path: &PathBuf) -> Result<Vec<(String, JobParameter)>, String> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read the parameters of `{shown}`: {error}"))?;
    let lines = text.lines().enumerate();
    lines
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let tight = line
                .split_once('=')
                .map(|(name, value)| format!("{}={}", name.trim_end(), value.trim_start()));
            let line = tight.as_deref().unwrap_or(line);
            parameter(line).map_err(|problem| format!("{shown}:{number}: {problem}"))
        })
        .collect()
}

/// `name=value`, `name(type)=value`, both with or without `-` in front.
fn parameter(text: &str) -> Result<(String, JobParameter), String> {
    const EXPECTED: &str = "expected NAME=VALUE";
    let text = text.trim_start_matches(' ');
    let (identifying, text) = match text.strip_prefix('-') {
        Some(rest) => (false, rest),
        None => (true, text),
    };
    let (name, value) = text.split_once('=').ok_or(EXPECTED)?;
    let (name, kind) = match name.strip_suffix(')').and_then(|name| name.rsplit_once('(')) {
        Some((name, kind)) => (name, kind),
        None => (name, "string"),
    };
    if name.is_empty() {
        return Err(EXPECTED.into());
    }
    let wrong = |what: &str| format!("{value:?} is not {what}");
    let value = match kind {
        "string" => ParameterValue::String(value.into()),
        "long" => ParameterValue::Long(value.parse().map_err(|_| wrong("a whole number of 64 bits"))?),
        "double" => ParameterValue::Double(value.parse().map_err(|_| wrong("a number"))?),
        "date" => ParameterValue::Date(value.parse().map_err(|error| format!("{value:?}: {error}"))?),
        "secret" => ParameterValue::Secret(
            value
                .parse()
                .map_err(|error| format!("parameter `{name}`: {error}"))?,
        ),
        other => {
            return Err(format!(
                "there is no type {other:?}: expected string, long, double, date or secret"
            ));
        }
    };
    Ok((name.to_owned(), JobParameter { value, identifying }))
}

/// A parameter as it would be written.
pub(super) fn written(name: &str, parameter: &JobParameter) -> String {
    let not_identifying = if parameter.identifying { "" } else { "-" };
    let kind = match &parameter.value {
        ParameterValue::String(_) => "",
        ParameterValue::Long(_) => "(long)",
        ParameterValue::Double(_) => "(double)",
        ParameterValue::Date(_) => "(date)",
        ParameterValue::Secret(reference) => return format!("{not_identifying}{name}(secret)={reference}"),
    };
    format!("{not_identifying}{name}{kind}={}", parameter.value.to_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn read(text: &str) -> Result<JobParameters, String> {
        let arguments = vec![text.parse()?];
        Parameters { arguments }.into_parameters()
    }

    /// Spec: REPO-30, REPO-36
    #[test]
    fn parameters_have_types_and_a_part_in_the_identity() {
        for (text, name, value, identifying) in [
            ("a=b=c", "a", ParameterValue::String("b=c".into()), true),
            ("a=", "a", ParameterValue::String(String::new()), true),
            ("-note=x", "note", ParameterValue::String("x".into()), false),
            (" -note=x", "note", ParameterValue::String("x".into()), false),
            ("n(long)=-5", "n", ParameterValue::Long(-5), true),
            ("-n(double)=1.5", "n", ParameterValue::Double(1.5), false),
            (
                "d(date)=2024-01-01",
                "d",
                ParameterValue::Date(Timestamp(1_704_067_200_000)),
                true,
            ),
            ("n(string)=5", "n", ParameterValue::String("5".into()), true),
            ("f(x)(long)=5", "f(x)", ParameterValue::Long(5), true),
        ] {
            let expected = JobParameters::new().with_parameter(name, value, identifying);
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "a=b",
            "-a=b",
            "n(long)=5",
            "-n(double)=1.5",
            "d(date)=2024-01-01T00:00:00.000Z",
            "-p(secret)=env:PASSWORD",
            "p(secret)=file:/run/secrets/a=b",
        ] {
            let (name, parameter) = parameter(text).unwrap();
            assert_eq!(written(&name, &parameter), text);
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, problem) in [
            ("a", "expected NAME=VALUE"),
            ("=b", "expected NAME=VALUE"),
            ("(long)=5", "expected NAME=VALUE"),
            ("n(long)=5x", "\"5x\" is not a whole number of 64 bits"),
            // Not the value, which may be the secret itself.
            (
                "p(secret)=hunter2",
                "parameter `p`: expected env:VARIABLE or file:PATH, which say where the secret is",
            ),
            ("n(double)=x", "\"x\" is not a number"),
            (
                "n(int)=5",
                "there is no type \"int\": expected string, long, double, date or secret",
            ),
            (
                "d(date)=tomorrow",
                "\"tomorrow\": expected a day or a time in UTC, such as 2026-11-20 or 2026-11-20T13:45:00Z",
            ),
        ] {
            assert_eq!(read(text), Err(problem.to_owned()), "{text}");
        }
    }

    #[test]
    fn only_parameters_are_shielded_from_options() {
        let arguments = [
            "p",
            "launch",
            "-note=x",
            "-Da=b",
            "--json",
            "-o=f",
            "-h",
            "n=-5",
            "--log=info",
        ];
        let shielded: Vec<OsString> = shielded(arguments.map(OsString::from)).collect();
        let expected = [
            "p",
            "launch",
            " -note=x",
            "-Da=b",
            "--json",
            "-o=f",
            "-h",
            "n=-5",
            "--log=info",
        ];
        assert_eq!(shielded, expected.map(OsString::from));
    }
}
