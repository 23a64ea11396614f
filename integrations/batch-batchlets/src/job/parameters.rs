//! The parameters of a nested job, as a property.

use std::str::FromStr;

use batch_runtime::{JobParameters, ParameterValue, Timestamp};

use crate::command::Words;
use batch_runtime::execution::OuterStep;

/// Parameters by their names.
#[derive(Clone, Default)]
pub(super) struct Parameters(Vec<(String, ParameterValue)>);

impl Parameters {
    /// Adds them to others, without identifying an instance.
    pub(super) fn added_to(&self, others: JobParameters) -> JobParameters {
        let add = |parameters: JobParameters, (name, value): &(String, ParameterValue)| {
            parameters.with_parameter(name.clone(), value.clone(), false)
        };
        self.0.iter().fold(others, add)
    }
}

impl FromStr for Parameters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Words = text.parse()?;
        let parameters = words.0.iter().map(|word| parameter(word));
        parameters.collect::<Result<_, _>>().map(Self)
    }
}

fn parameter(word: &str) -> Result<(String, ParameterValue), String> {
    let (name, value) = word
        .split_once('=')
        .ok_or_else(|| format!("`{}` is not `NAME=VALUE`", word.escape_debug()))?;
    let (name, kind) = match name
        .trim()
        .strip_suffix(')')
        .and_then(|name| name.rsplit_once('('))
    {
        Some((name, kind)) => (name, Some(kind)),
        None => (name.trim(), None),
    };
    if name.is_empty() || name == OuterStep::INSTANCE || name == OuterStep::STEP {
        return Err(format!("`{name}` cannot be the name of a parameter here"));
    }
    let invalid = |kind: &str| format!("the value of `{}` is not a {kind}", name.escape_debug());
    let value = match kind {
        None | Some("string") => ParameterValue::String(value.to_owned()),
        Some("long") => ParameterValue::Long(value.parse().map_err(|_| invalid("long"))?),
        Some("double") => ParameterValue::Double(value.parse().map_err(|_| invalid("double"))?),
        Some("date") => ParameterValue::Date(value.parse::<Timestamp>().map_err(|_| invalid("date"))?),
        Some(other) => {
            return Err(format!(
                "unknown type `{}` of `{}`; expected `string`, `long`, `double` or `date`",
                other.escape_debug(),
                name.escape_debug()
            ));
        }
    };
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: NEST-01
    #[test]
    fn parameters_have_names_and_types() {
        let parameters: Parameters =
            "day=2026-11-20 'a b'='c d=e' n(long)=5 x(double)=0.5 t(date)=2026-11-20 e="
                .parse()
                .unwrap();
        let all = parameters.added_to(JobParameters::new());
        let shown: Vec<_> = all
            .iter()
            .map(|(name, one)| (name.to_owned(), one.value.to_text(), one.identifying))
            .collect();
        let texts: Vec<_> = shown
            .iter()
            .map(|(name, value, _)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            texts.join("|"),
            "a b=c d=e|day=2026-11-20|e=|n=5|t=2026-11-20T00:00:00.000Z|x=0.5"
        );
        assert!(shown.iter().all(|(.., identifying)| !identifying));
    }

    // Spec: NEST-01
    #[test]
    fn wrong_parameters_are_errors() {
        for (text, problem) in [
            ("day", "`day` is not `NAME=VALUE`"),
            ("=x", "`` cannot be the name of a parameter here"),
            (
                "parent.step=x",
                "`parent.step` cannot be the name of a parameter here",
            ),
            ("n(long)=x", "the value of `n` is not a long"),
            (
                "n(int)=5",
                "unknown type `int` of `n`; expected `string`, `long`, `double` or `date`",
            ),
            ("a='b", "a quote ' is not closed"),
        ] {
            assert_eq!(text.parse::<Parameters>().err().unwrap(), problem);
        }
    }
}
