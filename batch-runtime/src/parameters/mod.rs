//! Job parameters, and the key that identifies the job instance by them.
// Spec: DOM-10, DOM-11, REPO-26 to REPO-36, D-56

mod java_text;
mod job_key;
mod text;
mod validation;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::text::NamedParameter;
use crate::clock::Timestamp;
pub use crate::secret::{SecretError, SecretReference, SecretReferenceError};
use java_text::java_double;

/// The parameter that gives each `start` a new instance. Spring Batch's JSR-352 support uses it too.
pub(crate) const RUN_ID: &str = "jsr_batch_run_id";

const MAX_NAME: usize = 100;
/// 1000-01-08T00:00:00.000Z to 9999-12-31T23:59:59.999Z in milliseconds since 1970, the range of MySQL's columns: Java's drivers store
/// dates in the Julian calendar, which puts the first days of that year into the year 999 in at least one time zone.
const DATES: RangeInclusive<i64> = -30_609_619_200_000..=253_402_300_799_999;

/// The value of a parameter: of one of the four types of the repository, null, a reference to a secret, which is stored as text, or of
/// another type of Java.
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
    /// A null of this type, as Spring Batch stores it up to 4.3. In the identity it is an empty text; properties and `${...}` treat it as
    /// absent.
    Null(ParameterType),
    /// A value of another type, which a repository in the layout of Spring Batch 5 or 6 stores as text. Everything but the identity
    /// treats it as text.
    Java(JavaValue),
}

/// The value of a parameter whose type is a class of Java.
///
/// It can identify an instance if its text in the identity is certain, which is so for `Integer`, `Short`, `Byte`, `BigInteger`,
/// `BigDecimal`, `Boolean`, `UUID`, `LocalDate`, `LocalTime` and `LocalDateTime`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaValue {
    /// The name of the class, such as `java.time.LocalDate`.
    pub class: String,
    /// The text that Spring Batch converts the value to, such as `2026-11-20`; at most 2500 characters.
    pub text: String,
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

    /// Returns the class of Java for the type.
    fn class(self) -> &'static str {
        match self {
            Self::String => "java.lang.String",
            Self::Long => "java.lang.Long",
            Self::Double => "java.lang.Double",
            Self::Date => "java.util.Date",
        }
    }
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
            Self::Java(value) => value.text.clone(),
        }
    }

    /// Converts a text of the repository.
    pub(crate) fn of_stored(text: String) -> Self {
        SecretReference::of_stored(&text).map_or(Self::String(text), Self::Secret)
    }

    /// Returns the class of Java for the value.
    pub(crate) fn class(&self) -> &str {
        match self {
            Self::String(_) | Self::Secret(_) => ParameterType::String.class(),
            Self::Long(_) => ParameterType::Long.class(),
            Self::Double(_) => ParameterType::Double.class(),
            Self::Date(_) => ParameterType::Date.class(),
            Self::Null(kind) => kind.class(),
            Self::Java(value) => &value.class,
        }
    }

    /// Returns the text that Spring Batch 5 and 6 store for the value; `None` is null.
    pub(crate) fn typed_text(&self) -> Option<String> {
        match self {
            Self::Null(_) => None,
            Self::Date(time) => Some(java_text::java_instant(*time)),
            other => Some(other.to_text()),
        }
    }

    /// Converts a value that Spring Batch 5 or 6 stored. Spring Batch's own migration keeps the old type names and drops all values except
    /// texts; dropped values are read as null.
    // Spec: REPO-88
    pub(crate) fn of_typed(class: &str, text: Option<String>) -> Self {
        let kinds = || ParameterType::ALL.iter();
        let old = kinds().find(|(_, name)| name.to_ascii_uppercase() == class);
        let kind = old.or_else(|| kinds().find(|(kind, _)| kind.class() == class));
        let kind = kind.map(|(kind, _)| *kind);
        let is_lost = |text: &str| text.is_empty() && old.is_some() && kind != Some(ParameterType::String);
        let Some(text) = text.filter(|text| !is_lost(text)) else {
            return kind.map_or_else(|| Self::java(class, String::new()), Self::Null);
        };
        let value = match kind {
            Some(ParameterType::String) => return Self::of_stored(text),
            Some(ParameterType::Long) => text.parse().ok().map(Self::Long),
            Some(ParameterType::Double) => text.parse().ok().map(Self::Double),
            Some(ParameterType::Date) => text.parse().ok().map(Self::Date),
            None => None,
        };
        // A text that does not round-trip is kept as it is.
        let value = value.filter(|value| value.typed_text().as_deref() == Some(&text));
        value.unwrap_or_else(|| Self::java(class, text))
    }

    /// Creates the value that Spring Batch 5 and 6 store with a class of Java: one of the other variants for their classes
    /// (`java.lang.Long` is [`Long`](Self::Long)), else [`Java`](Self::Java).
    pub fn of_class(class: &str, text: impl Into<String>) -> Self {
        match Self::of_typed(class, Some(text.into())) {
            // Only stored values can be references to secrets.
            Self::Secret(reference) => Self::String(reference.to_stored()),
            value => value,
        }
    }

    fn java(class: &str, text: String) -> Self {
        Self::Java(JavaValue {
            class: class.to_owned(),
            text,
        })
    }

    /// Returns the text for the JOB_KEY, with dates in milliseconds.
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
    // Spec: D-57
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

    /// Returns the parameters of a `start`, identified only by the run id.
    // Spec: D-56
    pub(crate) fn for_start(mut self, run_id: i64) -> Self {
        self.0
            .values_mut()
            .for_each(|parameter| parameter.identifying = false);
        self.with_parameter(RUN_ID, ParameterValue::Long(run_id), true)
    }

    /// Returns the parameters that are not null.
    pub(crate) fn without_nulls(mut self) -> Self {
        self.0
            .retain(|_, parameter| !matches!(parameter.value, ParameterValue::Null(_)));
        self
    }

    /// Returns the user's parameters, without the runtime's.
    // Spec: OP-06
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As in Spring Batch, a null is an empty text in the key; it is no value anywhere else.
    // Spec: REPO-26, REPO-38
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

    // Spec: REPO-88
    #[test]
    fn values_of_later_layouts_come_back() {
        let java = |class: &str, text: &str| ParameterValue::java(class, text.to_owned());
        for value in [
            ParameterValue::String("5".into()),
            ParameterValue::Long(i64::MIN),
            ParameterValue::Double(1e-7),
            ParameterValue::Date(Timestamp(1_704_067_200_123)),
            ParameterValue::Date(Timestamp(-1_000)),
            ParameterValue::Null(ParameterType::Date),
            java("java.time.LocalDate", "2024-01-01"),
            java("java.lang.Long", "+5"),
            java("java.util.Date", "2024-01-01T00:00:00.123456Z"),
        ] {
            let read = ParameterValue::of_typed(value.class(), value.typed_text());
            assert_eq!(read, value);
        }
        // As Spring Batch's own migration leaves parameters of 4.3.
        for (class, text, value) in [
            ("STRING", Some("x"), ParameterValue::String("x".into())),
            ("STRING", None, ParameterValue::Null(ParameterType::String)),
            ("LONG", Some(""), ParameterValue::Null(ParameterType::Long)),
            ("DOUBLE", None, ParameterValue::Null(ParameterType::Double)),
        ] {
            assert_eq!(ParameterValue::of_typed(class, text.map(str::to_owned)), value);
        }
    }

    /// A restart must not change the identity: a parameter that it adds is not identifying, one that it replaces stays as it was.
    // Spec: D-57, OP-12
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

    // Spec: D-56
    #[test]
    fn a_start_is_identified_by_its_run_id_alone() {
        let of = |value: &str, run| JobParameters::from([("input", value)]).for_start(run).job_key();
        assert_eq!(of("a", 7), of("b", 7));
        assert_ne!(of("a", 7), of("a", 8));
    }
}
