//! Job parameters as arguments: `name=value`, `name(type)=value`, `-name=value`, `@file`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use batch_runtime::parameters::JobParameter;
use batch_runtime::{JobParameters, ParameterValue};
use clap::Args;

use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct Parameters {
    /// Job parameters: NAME=VALUE, NAME(long)=5, NAME(double)=1.5, NAME(date)=2026-11-20, in the layouts of Spring Batch 5 and 6 also
    /// NAME(CLASS)=VALUE with a class of Java; NAME(secret)=env:VARIABLE or
    /// NAME(secret)=file:PATH for values that must not be stored; -NAME=VALUE does not identify the instance; @FILE holds one
    /// parameter on each line
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

impl Parameters {
    /// Returns the parameters of the arguments and of the files that they name.
    ///
    /// # Errors
    /// If a name is given twice, or a file cannot be used.
    pub(crate) fn into_parameters(self) -> Result<JobParameters, CliError> {
        let mut all = Vec::new();
        for argument in self.arguments {
            match argument {
                Argument::Parameter(name, parameter) => all.push((name, parameter)),
                Argument::File(path) => all.extend(read_file(&path)?),
            }
        }
        let mut names = BTreeSet::new();
        if let Some((twice, _)) = all.iter().find(|(name, _)| !names.insert(name)) {
            return Err(CliError::ParameterTwice(twice.clone()));
        }
        let parameters = all.into_iter();
        Ok(parameters.fold(JobParameters::new(), |parameters, (name, one)| {
            parameters.with_parameter(name, one.value, one.identifying)
        }))
    }
}

/// Reads one parameter from each line, except empty lines and those that begin with `#`. Spaces around the `=` are ignored.
fn read_file(path: &Path) -> Result<Vec<(String, JobParameter)>, CliError> {
    let text = fs::read_to_string(path).map_err(CliError::file("read the parameter file", path))?;
    let lines = (1..).zip(text.lines().map(str::trim));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let tight = line
                .split_once('=')
                .map(|(name, value)| format!("{}={}", name.trim_end(), value.trim_start()));
            parameter(tight.as_deref().unwrap_or(line)).map_err(|problem| CliError::ParameterFile {
                place: format!("{}:{number}", path.display()),
                problem,
            })
        })
        .collect()
}

/// Parses `name=value` or `name(type)=value`, both with or without `-` in front.
pub(crate) fn parameter(text: &str) -> Result<(String, JobParameter), String> {
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
    let invalid = |expected: &str| format!("invalid value `{value}`: expected {expected}");
    let value = match kind {
        "string" => ParameterValue::String(value.into()),
        "long" => ParameterValue::Long(value.parse().map_err(|_| invalid("a 64-bit integer"))?),
        "double" => ParameterValue::Double(value.parse().map_err(|_| invalid("a number"))?),
        "date" => {
            let date = value.parse();
            ParameterValue::Date(date.map_err(|error| format!("invalid value `{value}`: {error}"))?)
        }
        "secret" => {
            let reference = value.parse();
            ParameterValue::Secret(reference.map_err(|error| format!("parameter `{name}`: {error}"))?)
        }
        "null" => ParameterValue::Null(value.parse()?),
        class if class.contains('.') => ParameterValue::of_class(class.trim(), value),
        other => {
            return Err(format!(
                "unknown type `{other}`: expected string, long, double, date, secret, null or a class of Java such as \
                 java.time.LocalDate"
            ));
        }
    };
    Ok((name.to_owned(), JobParameter { value, identifying }))
}

/// Formats a parameter as an argument.
pub(crate) fn format_parameter(name: &str, parameter: &JobParameter) -> String {
    let not_identifying = if parameter.identifying { "" } else { "-" };
    let kind = match &parameter.value {
        // The parentheses at the end of the name would be read as a type.
        ParameterValue::String(_) if name.ends_with(')') => "(string)",
        ParameterValue::String(_) => "",
        ParameterValue::Long(_) => "(long)",
        ParameterValue::Double(_) => "(double)",
        ParameterValue::Date(_) => "(date)",
        ParameterValue::Secret(reference) => return format!("{not_identifying}{name}(secret)={reference}"),
        ParameterValue::Null(kind) => return format!("{not_identifying}{name}(null)={kind}"),
        ParameterValue::Java(java) => {
            return format!("{not_identifying}{name}({})={}", java.class, java.text);
        }
    };
    format!("{not_identifying}{name}{kind}={}", parameter.value.to_text())
}

#[cfg(test)]
mod tests {
    use batch_runtime::parameters::JavaValue;

    use super::*;
    use batch_runtime::Timestamp;
    use batch_runtime::parameters::ParameterType;

    fn read(text: &str) -> Result<JobParameters, String> {
        let arguments = vec![text.parse()?];
        Parameters { arguments }
            .into_parameters()
            .map_err(|error| error.to_string())
    }

    /// Spec: REPO-30, REPO-36
    #[test]
    fn parameters_have_types_and_may_identify() {
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
            (
                "n(null)=long",
                "n",
                ParameterValue::Null(ParameterType::Long),
                true,
            ),
            ("f(x)(long)=5", "f(x)", ParameterValue::Long(5), true),
            ("n(java.lang.Long )=5", "n", ParameterValue::Long(5), true),
            (
                "s(java.lang.String)=a",
                "s",
                ParameterValue::String("a".into()),
                true,
            ),
            (
                "-d(java.time.LocalDate)=2026-11-20",
                "d",
                ParameterValue::Java(JavaValue {
                    class: "java.time.LocalDate".into(),
                    text: "2026-11-20".into(),
                }),
                false,
            ),
        ] {
            let expected = JobParameters::new().with_parameter(name, value, identifying);
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_formatted_parameter_is_parsed_again() {
        for text in [
            "a=b",
            "-a=b",
            "f(x)(string)=5",
            "n(long)=5",
            "-n(double)=1.5",
            "d(date)=2024-01-01T00:00:00.000Z",
            "-p(secret)=env:PASSWORD",
            "p(secret)=file:/run/secrets/a=b",
            "-d(java.time.LocalDate)=2026-11-20",
        ] {
            let (name, parameter) = parameter(text).unwrap();
            assert_eq!(format_parameter(&name, &parameter), text);
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, problem) in [
            ("a", "expected NAME=VALUE"),
            ("=b", "expected NAME=VALUE"),
            ("(long)=5", "expected NAME=VALUE"),
            ("n(long)=5x", "invalid value `5x`: expected a 64-bit integer"),
            // The value may be the secret itself, so the message does not quote it.
            (
                "p(secret)=hunter2",
                "parameter `p`: expected a reference to the secret, env:VARIABLE or file:PATH",
            ),
            ("n(double)=x", "invalid value `x`: expected a number"),
            (
                "n(int)=5",
                "unknown type `int`: expected string, long, double, date, secret, null or a class of Java such as java.time.LocalDate",
            ),
            (
                "d(date)=tomorrow",
                "invalid value `tomorrow`: expected a day or a time in UTC, such as 2026-11-20 or 2026-11-20T13:45:00Z",
            ),
        ] {
            assert_eq!(read(text), Err(problem.to_owned()), "{text}");
        }
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
