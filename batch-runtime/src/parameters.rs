//! Job parameters, and the key by which they identify the job instance.
//!
//! Spec: DOM-10, DOM-11, REPO-26 to REPO-36, D-56

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;
use std::str::FromStr;

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
pub use crate::secret::{SecretError, SecretReference, SecretReferenceError};

/// The parameter that gives each `start` an instance of its own. Spring Batch's JSR-352 support uses it too.
pub(crate) const RUN_ID: &str = "jsr_batch_run_id";

const MAX_NAME: usize = 100;
const MAX_STRING: usize = 250;
/// 1000-01-08T00:00:00.000Z to 9999-12-31T23:59:59.999Z in milliseconds since 1970, the range of MySQL's columns: the first days of
/// that year are in the year 999 of the Julian calendar, by which Java's drivers store them, at least in some time zone.
const DATES: RangeInclusive<i64> = -30_609_619_200_000..=253_402_300_799_999;

/// The value of a parameter: of one of the four types of the repository, null, or a reference to a secret, which is stored as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterValue {
    /// Text, at most 250 characters.
    String(String),
    /// A whole number.
    Long(i64),
    /// A floating-point number. Better not identifying: the text of some values in the key depends on the JVM.
    Double(f64),
    /// A point in time, from 1000-01-08 to the end of the year 9999.
    Date(Timestamp),
    /// A reference to a secret. It is stored, displayed and part of the identity as the text `secret:env:NAME`. The
    /// secret is read at each start and restart, and only injected fields and contexts receive it.
    Secret(SecretReference),
    /// A null of this type, as Spring Batch stores it. In the identity it is an empty text; properties and `${...}` treat it as absent.
    Null(ParameterType),
}

/// The type of a parameter in the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    /// Text.
    String,
    /// A whole number.
    Long,
    /// A floating-point number.
    Double,
    /// A point in time.
    Date,
}

impl ParameterType {
    const ALL: [(Self, &str); 4] = [
        (Self::String, "string"),
        (Self::Long, "long"),
        (Self::Double, "double"),
        (Self::Date, "date"),
    ];
}

/// The name in lower case.
impl fmt::Display for ParameterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(one, _)| one == self);
        f.write_str(found.map_or("", |(_, name)| name))
    }
}

impl FromStr for ParameterType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(one, _)| *one)
            .ok_or_else(|| format!("unknown type `{text}`: expected string, long, double or date"))
    }
}

impl ParameterValue {
    /// Returns the value as text; for a secret, its reference, and for null, an empty text.
    pub fn to_text(&self) -> String {
        match self {
            Self::String(text) => text.clone(),
            Self::Long(number) => number.to_string(),
            Self::Double(number) => java_double(*number),
            Self::Date(time) => time.to_string(),
            Self::Secret(reference) => reference.to_stored(),
            Self::Null(_) => String::new(),
        }
    }

    /// Converts a text of the repository.
    pub(crate) fn of_stored(text: String) -> Self {
        SecretReference::of_stored(&text).map_or(Self::String(text), Self::Secret)
    }

    /// Returns the text for the JOB_KEY, in which dates are milliseconds.
    fn key_text(&self) -> String {
        match self {
            Self::Date(time) => time.0.to_string(),
            other => other.to_text(),
        }
    }
}

/// A parameter: a value that may be part of the instance's identity.
#[derive(Clone, Debug, PartialEq)]
pub struct JobParameter {
    /// The value.
    pub value: ParameterValue,
    /// True if the value is part of the instance's identity.
    pub identifying: bool,
}

/// The parameters of a job execution.
///
/// ```
/// use batch_runtime::JobParameters;
/// let parameters = JobParameters::from([("input", "flights.csv")]).with_non_identifying("threads", "2");
/// assert_eq!(parameters.get("input").as_deref(), Some("flights.csv"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobParameters(BTreeMap<String, JobParameter>);

impl JobParameters {
    /// Creates an empty set of parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces an identifying text parameter.
    #[must_use]
    pub fn with(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with_parameter(name, ParameterValue::String(value.into()), true)
    }

    /// Adds or replaces a text parameter that is not part of the instance's identity.
    #[must_use]
    pub fn with_non_identifying(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with_parameter(name, ParameterValue::String(value.into()), false)
    }

    /// Adds or replaces an identifying parameter whose value is a secret. Only the reference is stored and identifies.
    ///
    /// ```
    /// use batch_runtime::{JobParameters, parameters::SecretReference};
    /// let reference = SecretReference::Env("DB_PASSWORD".into());
    /// let parameters = JobParameters::new().with_secret("password", reference);
    /// assert_eq!(parameters.get("password").as_deref(), Some("secret:env:DB_PASSWORD"));
    /// ```
    #[must_use]
    pub fn with_secret(self, name: impl Into<String>, reference: SecretReference) -> Self {
        self.with_parameter(name, ParameterValue::Secret(reference), true)
    }

    /// Adds or replaces a parameter.
    #[must_use]
    pub fn with_parameter(
        mut self,
        name: impl Into<String>,
        value: ParameterValue,
        identifying: bool,
    ) -> Self {
        self.0.insert(name.into(), JobParameter { value, identifying });
        self
    }

    /// Returns the value of a parameter as text; `None` if there is no such parameter, or if it is null.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = &self.0.get(name)?.value;
        (!matches!(value, ParameterValue::Null(_))).then(|| value.to_text())
    }

    /// Returns all parameters by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &JobParameter)> {
        self.0.iter().map(|(name, parameter)| (name.as_str(), parameter))
    }

    /// Returns whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns these parameters with `replacements`. A replaced parameter remains identifying or not, as before.
    /// Spec: D-57
    #[must_use]
    pub(crate) fn overlaid(mut self, replacements: &JobParameters) -> Self {
        for (name, replacement) in &replacements.0 {
            let identifying = self.0.get(name).is_some_and(|original| original.identifying);
            self.0.insert(
                name.clone(),
                JobParameter {
                    value: replacement.value.clone(),
                    identifying,
                },
            );
        }
        self
    }

    /// Returns whether names and texts of the identifying parameters are equal, as in the key: a command line knows
    /// no types, and must find an instance that was started with a LONG.
    pub(crate) fn same_identity(&self, other: &Self) -> bool {
        self.identity().eq(other.identity())
    }

    fn identity(&self) -> impl Iterator<Item = (&String, String)> {
        self.0
            .iter()
            .filter(|(_, parameter)| parameter.identifying)
            .map(|(name, parameter)| {
                let text = match parameter.value {
                    // SQLite stores no negative zero.
                    ParameterValue::Double(0.0) => java_double(0.0),
                    _ => parameter.value.key_text(),
                };
                (name, text)
            })
    }

    /// Returns the parameters of a `start`, identified only by the run id. Spec: D-56
    pub(crate) fn for_start(mut self, run_id: i64) -> Self {
        self.0
            .values_mut()
            .for_each(|parameter| parameter.identifying = false);
        self.with_parameter(RUN_ID, ParameterValue::Long(run_id), true)
    }

    /// Returns the user's parameters, without those of the runtime. Spec: OP-06
    #[must_use]
    pub(crate) fn without_run_id(mut self) -> Self {
        self.0.remove(RUN_ID);
        self
    }

    /// Returns names and values as properties and `${...}` see them; for secrets, their marks.
    pub(crate) fn as_text(&self) -> BTreeMap<String, String> {
        let text = |value: &ParameterValue| match value {
            ParameterValue::Secret(reference) => Some(reference.mark()),
            ParameterValue::Null(_) => None,
            other => Some(other.to_text()),
        };
        self.0
            .iter()
            .filter_map(|(name, parameter)| Some((name.clone(), text(&parameter.value)?)))
            .collect()
    }

    /// Returns the parameters that are secrets.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (&str, &SecretReference)> {
        self.0
            .iter()
            .filter_map(|(name, parameter)| match &parameter.value {
                ParameterValue::Secret(reference) => Some((name.as_str(), reference)),
                _ => None,
            })
    }

    /// Returns the digest of the identifying parameters, computed as by Spring Batch 4.3: 32 hexadecimal digits.
    ///
    /// Spec: REPO-26, D-70
    pub fn job_key(&self) -> String {
        let mut identifying: Vec<_> = self
            .0
            .iter()
            .filter(|(_, parameter)| parameter.identifying)
            .collect();
        // Java compares strings by UTF-16 code units, Rust by bytes, which differ beyond the BMP.
        identifying.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        let mut digest = Md5::new();
        for (name, parameter) in identifying {
            digest.update(format!("{name}={};", parameter.value.key_text()));
        }
        digest
            .finalize()
            .iter()
            .fold(String::with_capacity(32), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            })
    }

    /// Checks that the repository's columns can store the parameters.
    ///
    /// # Errors
    /// The first parameter that does not fit.
    ///
    /// Spec: REPO-31, REPO-32, D-69
    pub(crate) fn validate(&self) -> Result<(), ParameterError> {
        for (name, parameter) in &self.0 {
            check_text(name, "name", name, MAX_NAME)?;
            if name.is_empty() {
                return Err(ParameterError {
                    name: name.clone(),
                    problem: "the name is empty".into(),
                });
            }
            if name == RUN_ID {
                let problem = "the name is reserved for the runtime".into();
                return Err(ParameterError {
                    name: name.clone(),
                    problem,
                });
            }
            match &parameter.value {
                ParameterValue::String(text) if SecretReference::of_stored(text).is_some() => {
                    let problem = "a text of this form is reserved for references to secrets: write `name(secret)=env:NAME`";
                    return Err(ParameterError {
                        name: name.clone(),
                        problem: problem.into(),
                    });
                }
                ParameterValue::String(text) => check_text(name, "value", text, MAX_STRING)?,
                ParameterValue::Secret(reference) => {
                    check_text(name, "value", &reference.to_stored(), MAX_STRING)?;
                }
                ParameterValue::Double(number) if !number.is_finite() => {
                    let problem = format!("not every database can store {number}");
                    return Err(ParameterError {
                        name: name.clone(),
                        problem,
                    });
                }
                ParameterValue::Date(date) if !DATES.contains(&date.0) => {
                    let problem =
                        "the date is not between 1000-01-08 and 9999-12-31, which every database can store";
                    return Err(ParameterError {
                        name: name.clone(),
                        problem: problem.into(),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn check_text(name: &str, what: &str, text: &str, max: usize) -> Result<(), ParameterError> {
    let length = text.chars().count();
    let problem = if length > max {
        format!("the {what} has {length} characters, but the repository stores at most {max}")
    } else if text.contains('\0') {
        format!("the {what} contains a NUL character, which not every database can store")
    } else {
        return Ok(());
    };
    Err(ParameterError {
        name: name.chars().take(MAX_NAME).collect(),
        problem,
    })
}

/// A job parameter that the repository cannot store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job parameter `{}`: {problem}", .name.escape_debug())]
pub struct ParameterError {
    /// The parameter's name.
    pub name: String,
    /// The reason.
    pub problem: String,
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for JobParameters {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        pairs.into_iter().fold(Self::new(), |parameters, (name, value)| {
            parameters.with(name, value)
        })
    }
}

impl<N: Into<String>, V: Into<String>, const COUNT: usize> From<[(N, V); COUNT]> for JobParameters {
    fn from(pairs: [(N, V); COUNT]) -> Self {
        pairs.into_iter().collect()
    }
}

/// No parameters: `operator.launch("job", ())`.
impl From<()> for JobParameters {
    fn from((): ()) -> Self {
        Self::new()
    }
}

/// Formats like Java's `Double.toString`: plain between 10^-3 and 10^7 with at least one fraction digit, else with an
/// exponent.
fn java_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let magnitude = number.abs();
    if number == 0.0 || (1e-3..1e7).contains(&magnitude) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    // At least two digits, the nearest ones: 4.9E-324, although 5E-324 would identify the number too.
    let shortest = format!("{number:e}");
    let scientific = match shortest.split_once('e') {
        Some((digits, _)) if !digits.contains('.') => format!("{number:.1e}"),
        _ => shortest,
    };
    scientific.replace('e', "E")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked examples of Spring Batch 4.3. Spec: REPO-26, REPO-27
    #[test]
    fn job_keys_are_those_of_spring_batch() {
        let check = |parameters: JobParameters, key: &str| assert_eq!(parameters.job_key(), key);
        let long =
            |name: &str, value| JobParameters::new().with_parameter(name, ParameterValue::Long(value), true);
        let double = |value| JobParameters::new().with_parameter("d", ParameterValue::Double(value), true);
        check(JobParameters::new(), "d41d8cd98f00b204e9800998ecf8427e");
        check(
            long("run.id", 1)
                .with("input.file", "/data/in.csv")
                .with_parameter("rate", ParameterValue::Double(1.5), true)
                .with_parameter("date", ParameterValue::Date(Timestamp(1_704_067_200_000)), true)
                .with_non_identifying("note", "x"),
            "7fa313051b5bbbd1965642385c3edfd3",
        );
        check(
            JobParameters::from([("a", "2"), ("B", "1")]),
            "06d4e1513e5758c8e00ce7cf37eeb1cd",
        );
        check(double(1e21), "3cef4d73c69e1ac248c1159a26a4072f");
        check(double(100.0), "308a9ea98f8149752a2a401a656e9c76");
        check(long("run.id", 2), "e070bff4379694c0210a51d9f6c6a564");
        check(
            JobParameters::new().for_start(1),
            "cbef88237020a799f353b7458263026a",
        );
    }

    /// As in Spring Batch, a null is an empty text in the key; it is no value anywhere else.
    ///
    /// Spec: REPO-26, REPO-38
    #[test]
    fn a_null_is_not_a_value() {
        let null = |kind| JobParameters::new().with_parameter("n", ParameterValue::Null(kind), true);
        let empty = JobParameters::from([("n", "")]);
        for (kind, _) in ParameterType::ALL {
            assert_eq!(null(kind).job_key(), empty.job_key());
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let parameters = null(ParameterType::Long);
        assert_eq!(parameters.get("n"), None);
        assert!(parameters.as_text().is_empty());
        assert!(!parameters.is_empty());
    }

    /// Names are sorted by UTF-16, where characters beyond the BMP come before some of it; by bytes they would come last.
    ///
    /// Spec: REPO-26
    #[test]
    fn keys_sort_names_as_java_does() {
        let parameters = JobParameters::from([("\u{ff61}", "1"), ("\u{10000}", "2")]);
        let of_java = Md5::digest("\u{10000}=2;\u{ff61}=1;");
        let hex = of_java.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        assert_eq!(parameters.job_key(), hex);
    }

    /// A restart must not change the identity: a parameter that it adds is not identifying, one that it replaces stays as it was.
    ///
    /// Spec: D-57, OP-12
    #[test]
    fn parameters_of_a_restart_do_not_identify() {
        let original = JobParameters::from([("day", "1")]).with_non_identifying("note", "a");
        let replacements = JobParameters::from([("note", "b"), ("added", "c")]);
        let restarted = original.clone().overlaid(&replacements);
        assert_eq!(restarted.job_key(), original.job_key());
        assert_eq!(restarted.get("added").as_deref(), Some("c"));
        assert_eq!(restarted.get("note").as_deref(), Some("b"));
        let replaced = original.overlaid(&JobParameters::new().with_non_identifying("day", "2"));
        assert!(
            replaced
                .iter()
                .any(|(name, parameter)| name == "day" && parameter.identifying)
        );
    }

    /// Spec: D-56
    #[test]
    fn a_start_is_identified_by_its_run_id_alone() {
        let of = |value: &str, run| JobParameters::from([("input", value)]).for_start(run).job_key();
        assert_eq!(of("a", 7), of("b", 7));
        assert_ne!(of("a", 7), of("a", 8));
    }

    #[test]
    fn doubles_are_spelled_as_java_does() {
        let check = |number, text: &str| assert_eq!(java_double(number), text);
        check(-0.0, "-0.0");
        check(0.001, "0.001");
        check(9_999_999.0, "9999999.0");
        check(1e7, "1.0E7");
        check(9e-4, "9.0E-4");
        check(12_345_678.9, "1.23456789E7");
        check(f64::from_bits(1), "4.9E-324");
        check(f64::from_bits(2), "9.9E-324");
        check(-2e23, "-2.0E23");
        check(f64::MAX, "1.7976931348623157E308");
        check(f64::NAN, "NaN");
        check(f64::NEG_INFINITY, "-Infinity");
    }

    /// Spec: REPO-31, REPO-32
    #[test]
    fn values_that_columns_cannot_hold_are_rejected() {
        let check = |name: String, value: String| JobParameters::new().with(name, value).validate();
        assert_eq!(check("n".repeat(100), "é".repeat(250)), Ok(()));
        assert!(check("n".repeat(101), String::new()).is_err());
        assert!(
            check("n".into(), "é".repeat(251))
                .unwrap_err()
                .to_string()
                .contains("251 characters")
        );
        assert!(
            check("n".into(), "a\0b".into())
                .unwrap_err()
                .to_string()
                .contains("NUL")
        );
        assert!(check(String::new(), "v".into()).is_err());
        assert!(check(RUN_ID.into(), "v".into()).is_err());
    }
}
