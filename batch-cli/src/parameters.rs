//! Job parameters as arguments: `name=value`, `name(type)=value`, `-name=value`, `@file`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use batch_runtime::JobParameters;
use batch_runtime::parameters::NamedParameter;
use clap::Args;

use crate::error::CliError;

#[derive(Args, Debug, Default)]
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

/// Reads one parameter from each line, except empty lines and those that begin with `#`. Spaces around the `=` are ignored.
fn read_file(path: &Path) -> Result<Vec<NamedParameter>, CliError> {
    let text = fs::read_to_string(path).map_err(CliError::file("read the parameter file", path))?;
    let lines = (1..).zip(text.lines().map(str::trim));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let tight = line
                .split_once('=')
                .map(|(name, value)| format!("{}={}", name.trim_end(), value.trim_start()));
            let parsed = tight.as_deref().unwrap_or(line).parse();
            parsed.map_err(|problem| CliError::ParameterFile {
                place: format!("{}:{number}", path.display()),
                problem,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
