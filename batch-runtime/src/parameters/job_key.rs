//! The JOB_KEY: the digest of the identifying parameters, computed as by the version of Spring Batch whose layout a repository has.

use std::fmt::Write as _;

use md5::{Digest, Md5};

use super::{JobParameter, JobParameters, ParameterError, ParameterType, ParameterValue, java_text};
use crate::layout::{RepositoryFormat, RepositoryLayout};

impl JobParameters {
    /// Returns the digest of the identifying parameters, computed as by Spring Batch 4.3: 32 hexadecimal digits.
    // Spec: REPO-26, D-70
    pub fn job_key(&self) -> String {
        let text = |(name, parameter): (&str, &JobParameter)| {
            let value = parameter.value.key_text();
            format!("{name}={value};")
        };
        digest(self.identifying().into_iter().map(text))
    }

    /// Returns the digest of the identifying parameters in a repository.
    ///
    /// # Errors
    /// The first identifying parameter whose text is not certain.
    // Spec: REPO-26, REPO-89
    pub(crate) fn job_key_in(&self, format: &RepositoryFormat) -> Result<String, ParameterError> {
        let is_certain = |value: &ParameterValue| !matches!(value, ParameterValue::Double(number) if !java_text::is_certain_double(*number));
        let identifying = self.identifying();
        if let Some((name, parameter)) = identifying
            .iter()
            .find(|(_, parameter)| !is_certain(&parameter.value))
        {
            return Err(uncertain(name, parameter, format));
        }
        if format.layout == RepositoryLayout::V4_3 {
            return Ok(self.job_key());
        }
        let texts = identifying.into_iter().map(|(name, parameter)| {
            let (class, value) =
                shown(&parameter.value, format).ok_or_else(|| uncertain(name, parameter, format))?;
            Ok(match format.layout {
                RepositoryLayout::V6 => format!(
                    "JobParameter{{name='{name}', value={value}, type=class {class}, identifying=true}}"
                ),
                _ => format!("{name}={{value={value}, type=class {class}, identifying=true}};"),
            })
        });
        Ok(digest(texts.collect::<Result<Vec<_>, _>>()?))
    }

    /// Returns the key of an instance with these parameters in a repository, if `key` is the one that Spring Batch computes in any layout;
    /// `None` if it is another one, or if the new one is not certain.
    pub(crate) fn key_instead_of(&self, key: &str, format: &RepositoryFormat) -> Option<String> {
        let is_of = |layout: &RepositoryLayout| {
            let format = RepositoryFormat {
                layout: *layout,
                ..format.clone()
            };
            self.job_key_in(&format).is_ok_and(|computed| computed == key)
        };
        RepositoryLayout::ALL.iter().find(|layout| is_of(layout))?;
        self.job_key_in(format).ok()
    }

    /// Returns the identifying parameters in the order of their names. Java compares strings by UTF-16 code units, Rust by bytes, which
    /// differ beyond the BMP.
    fn identifying(&self) -> Vec<(&str, &JobParameter)> {
        let mut identifying: Vec<_> = self
            .iter()
            .filter(|(_, parameter)| parameter.identifying)
            .collect();
        identifying.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        identifying
    }
}

/// Returns the class of a value, and its text in the keys of Spring Batch 5 and 6; `None` if it is not certain.
fn shown<'a>(value: &'a ParameterValue, format: &RepositoryFormat) -> Option<(&'a str, String)> {
    Some(match value {
        ParameterValue::Date(time) => (
            ParameterType::Date.class(),
            java_text::java_date(*time, &format.zone)?,
        ),
        ParameterValue::Java(value) => (&value.class, java_text::shown(&value.class, &value.text)?),
        // Spring Batch 5 and 6 have no null parameters.
        ParameterValue::Null(_) => return None,
        other => (other.class(), other.to_text()),
    })
}

fn uncertain(name: &str, parameter: &JobParameter, format: &RepositoryFormat) -> ParameterError {
    let reason = match &parameter.value {
        ParameterValue::Date(_) => format!("how Java shows this date in the time zone {}", format.zone),
        ParameterValue::Java(value) => format!("how Java shows this value of `{}`", value.class),
        ParameterValue::Double(number) => format!(
            "how Java shows the number {}: Java 18 and before show some numbers of its size with other digits",
            java_text::java_double(*number)
        ),
        _ => "how Java shows null".to_owned(),
    };
    ParameterError {
        name: name.to_owned(),
        problem: format!(
            "it cannot identify an instance in the layout of Spring Batch {}, whose keys contain {reason}, which is not certain; use a \
             text, or a parameter that does not identify (`-{name}=...`)",
            format.layout
        ),
    }
}

fn digest(texts: impl IntoIterator<Item = String>) -> String {
    let mut digest = Md5::new();
    for text in texts {
        digest.update(text);
    }
    let mut hex = String::with_capacity(32);
    for byte in digest.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::super::JavaValue;
    use super::*;
    use crate::clock::Timestamp;

    /// The worked examples of Spring Batch 4.3.
    // Spec: REPO-26, REPO-27
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

    /// Names are sorted by UTF-16, where characters beyond the BMP come before some of it; by bytes they would come last.
    // Spec: REPO-26
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

    fn key(parameters: &JobParameters, layout: RepositoryLayout) -> Result<String, String> {
        let format = RepositoryFormat {
            layout,
            ..RepositoryFormat::default()
        };
        parameters.job_key_in(&format).map_err(|error| error.to_string())
    }

    fn of(value: ParameterValue) -> JobParameters {
        JobParameters::new().with_parameter("n", value, true)
    }

    /// The texts are the output of `toString` of Spring Batch's parameters.
    // Spec: REPO-26, REPO-89
    #[test]
    fn keys_of_later_layouts_contain_the_types() {
        let md5 = |text: &str| digest([text.to_owned()]);
        let number = of(ParameterValue::Long(-5)).with_non_identifying("note", "x");
        assert_eq!(
            key(&number, RepositoryLayout::V5),
            Ok(md5("n={value=-5, type=class java.lang.Long, identifying=true};"))
        );
        assert_eq!(
            key(&number, RepositoryLayout::V6),
            Ok(md5(
                "JobParameter{name='n', value=-5, type=class java.lang.Long, identifying=true}"
            ))
        );
        let date = of(ParameterValue::Date(Timestamp(1_704_067_200_000))).with("a", "b");
        assert_eq!(
            key(&date, RepositoryLayout::V5),
            Ok(md5("a={value=b, type=class java.lang.String, identifying=true};\
                 n={value=Mon Jan 01 00:00:00 UTC 2024, type=class java.util.Date, identifying=true};"))
        );
        for layout in RepositoryLayout::ALL {
            assert_eq!(key(&JobParameters::new(), layout), Ok(md5("")));
        }
    }

    // Spec: REPO-89
    #[test]
    fn a_value_whose_text_is_not_certain_does_not_identify() {
        let java = |class: &str, text: &str| {
            of(ParameterValue::Java(JavaValue {
                class: class.into(),
                text: text.into(),
            }))
        };
        assert!(key(&java("java.lang.Integer", "5"), RepositoryLayout::V5).is_ok());
        for (parameters, reason) in [
            (java("java.util.Locale", "de"), "this value of `java.util.Locale`"),
            (of(ParameterValue::Null(ParameterType::Long)), "shows null"),
            (
                of(ParameterValue::Date(Timestamp(-20_000_000_000_000))),
                "this date in the time zone UTC",
            ),
        ] {
            let error = key(&parameters, RepositoryLayout::V6).unwrap_err();
            assert!(error.contains(reason) && error.contains("`-n=...`"), "{error}");
        }
    }

    // Spec: REPO-91
    #[test]
    fn a_key_of_another_layout_is_replaced() {
        let parameters = of(ParameterValue::Long(5));
        for layout in RepositoryLayout::ALL {
            let format = RepositoryFormat {
                layout,
                ..RepositoryFormat::default()
            };
            let own = key(&parameters, layout).unwrap();
            for other in RepositoryLayout::ALL {
                let other = key(&parameters, other).unwrap();
                assert_eq!(parameters.key_instead_of(&other, &format).as_ref(), Some(&own));
            }
            assert_eq!(
                parameters.key_instead_of("a key of a program's own", &format),
                None
            );
        }
    }
}
