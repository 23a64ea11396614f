//! A job parameter as text: `name=value`, `name(type)=value`, and with a `-` in front if it does not identify the instance.

use std::fmt;
use std::str::FromStr;

use super::{JobParameter, JobParameters, ParameterValue};

/// A job parameter with its name, as the command line, parameter files and the console take it.
///
/// ```
/// use batch_runtime::ParameterValue;
/// use batch_runtime::parameters::NamedParameter;
///
/// let rows: NamedParameter = "-rows(long)=5".parse()?;
/// assert_eq!(rows.name, "rows");
/// assert_eq!(rows.parameter.value, ParameterValue::Long(5));
/// assert!(!rows.parameter.identifying);
/// assert_eq!(rows.to_string(), "-rows(long)=5");
/// # Ok::<(), String>(())
/// ```
///
/// The types are `string` (the default), `long`, `double`, `date`, `secret`, `null` and, in the layouts of Spring Batch 5 and 6, classes of
/// Java.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedParameter {
    /// The name.
    pub name: String,
    /// The value, and whether it identifies the instance.
    pub parameter: JobParameter,
}

impl FromStr for NamedParameter {
    /// What is wrong, and what was expected.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
                let fraction = value.split_once('.').map_or("", |(_, digits)| digits);
                if fraction.trim_end_matches(['Z', '0']).len() > 3 {
                    return Err(invalid("a time with at most three digits after the second"));
                }
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
        let name = name.to_owned();
        let parameter = JobParameter { value, identifying };
        Ok(Self { name, parameter })
    }
}

impl fmt::Display for NamedParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parameter.to_text(&self.name))
    }
}

impl JobParameter {
    /// Returns the parameter as text with a name, which [`NamedParameter`] parses again.
    pub fn to_text(&self, name: &str) -> String {
        let not_identifying = if self.identifying { "" } else { "-" };
        let (kind, value) = match &self.value {
            // The parentheses at the end of the name would be read as a type.
            ParameterValue::String(text) if name.ends_with(')') => ("(string)".into(), text.clone()),
            ParameterValue::String(text) => (String::new(), text.clone()),
            ParameterValue::Long(_) => ("(long)".into(), self.value.to_text()),
            ParameterValue::Double(_) => ("(double)".into(), self.value.to_text()),
            ParameterValue::Date(_) => ("(date)".into(), self.value.to_text()),
            ParameterValue::Secret(reference) => ("(secret)".into(), reference.to_string()),
            ParameterValue::Null(kind) => ("(null)".into(), kind.to_string()),
            ParameterValue::Java(java) => (format!("({})", java.class), java.text.clone()),
        };
        format!("{not_identifying}{name}{kind}={value}")
    }
}

impl FromIterator<NamedParameter> for JobParameters {
    fn from_iter<I: IntoIterator<Item = NamedParameter>>(parameters: I) -> Self {
        let parameters = parameters.into_iter();
        parameters.fold(Self::new(), |all, NamedParameter { name, parameter }| {
            all.with_parameter(name, parameter.value, parameter.identifying)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{JavaValue, ParameterType};
    use crate::time::Timestamp;

    fn read(text: &str) -> Result<JobParameters, String> {
        let NamedParameter { name, parameter } = text.parse()?;
        Ok(JobParameters::new().with_parameter(name, parameter.value, parameter.identifying))
    }

    // Spec: REPO-30, REPO-36
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
            let parsed: NamedParameter = text.parse().unwrap();
            assert_eq!(parsed.to_string(), text);
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
                "d(date)=2024-01-01T00:00:00.1234Z",
                "invalid value `2024-01-01T00:00:00.1234Z`: expected a time with at most three digits after the second",
            ),
            (
                "d(date)=tomorrow",
                "invalid value `tomorrow`: expected a day or a time in UTC, such as 2026-11-20 or 2026-11-20T13:45:00Z",
            ),
        ] {
            assert_eq!(read(text), Err(problem.to_owned()), "{text}");
        }
    }
}
