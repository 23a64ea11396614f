//! The checks of parameters, before they are stored.

use super::{DATES, JobParameters, MAX_NAME, ParameterError, ParameterValue, RUN_ID, java_text};
use crate::layout::RepositoryLayout;
use crate::secret::SecretReference;

impl JobParameters {
    /// Checks the parameters of a launch, as [`validate`](Self::validate) does, and that Spring Batch can convert each Java value. Stored
    /// parameters skip the second check, because the program that wrote them may have its own converters.
    ///
    /// # Errors
    /// The first parameter that is invalid.
    // Spec: REPO-88
    pub(crate) fn validate_for_launch(&self, layout: RepositoryLayout) -> Result<(), ParameterError> {
        self.validate(Some(layout))?;
        for (name, parameter) in &self.0 {
            if let ParameterValue::Java(value) = &parameter.value
                && !java_text::is_readable(&value.class, &value.text)
            {
                return Err(ParameterError {
                    name: name.clone(),
                    problem: format!(
                        "invalid value `{}`: Spring Batch cannot convert it to `{}`",
                        value.text, value.class
                    ),
                });
            }
        }
        Ok(())
    }

    /// Checks that the columns of a repository with this layout can store the parameters; without a layout, that some layout can.
    ///
    /// # Errors
    /// The first parameter that does not fit.
    // Spec: REPO-31, REPO-32, REPO-88, D-69
    pub(crate) fn validate(&self, layout: Option<RepositoryLayout>) -> Result<(), ParameterError> {
        let max = layout.unwrap_or(RepositoryLayout::V6).max_parameter();
        for (name, parameter) in &self.0 {
            check_text(name, "name", name, MAX_NAME)?;
            let reject = |problem: String| {
                Err(ParameterError {
                    name: name.clone(),
                    problem,
                })
            };
            if name.is_empty() {
                return reject("the name is empty".into());
            }
            if name == RUN_ID {
                return reject("the name is reserved for the runtime".into());
            }
            match &parameter.value {
                ParameterValue::String(text) if SecretReference::of_stored(text).is_some() => {
                    let problem = "a text of this form is reserved for references to secrets: write `name(secret)=env:NAME`";
                    return reject(problem.into());
                }
                ParameterValue::String(text) => check_text(name, "value", text, max)?,
                ParameterValue::Secret(reference) => {
                    check_text(name, "value", &reference.to_stored(), max)?;
                }
                ParameterValue::Double(number) if !number.is_finite() => {
                    return reject(format!("not every database can store {number}"));
                }
                ParameterValue::Date(date) if !DATES.contains(&date.0) => {
                    let problem =
                        "the date is not between 1000-01-08 and 9999-12-31, which every database can store";
                    return reject(problem.into());
                }
                ParameterValue::Null(_) => {
                    if let Some(layout) = layout.filter(|layout| layout.has_typed_parameters()) {
                        return reject(format!("Spring Batch {layout} has no parameters that are null"));
                    }
                }
                ParameterValue::Java(value) => {
                    if let Some(layout) = layout.filter(|layout| !layout.has_typed_parameters()) {
                        return reject(format!(
                            "the layout of Spring Batch {layout} has no parameters of type `{}`: use a text, or convert the tables by \
                             `db upgrade`",
                            value.class
                        ));
                    }
                    check_text(name, "type", &value.class, MAX_NAME)?;
                    check_text(name, "value", &value.text, max)?;
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

#[cfg(test)]
mod tests {
    use super::super::ParameterType;
    use super::*;

    // Spec: REPO-31, REPO-32
    #[test]
    fn values_that_columns_cannot_hold_are_rejected() {
        let check = |name: String, value: String| {
            JobParameters::new()
                .with(name, value)
                .validate(Some(RepositoryLayout::V4_3))
        };
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
        let later = |value: ParameterValue| {
            let parameters = JobParameters::new().with_parameter("n", value, true);
            parameters
                .validate(Some(RepositoryLayout::V5))
                .map_err(|error| error.to_string())
        };
        assert_eq!(later(ParameterValue::String("é".repeat(2_500))), Ok(()));
        assert!(later(ParameterValue::String("é".repeat(2_501))).is_err());
        let java = ParameterValue::java("java.time.LocalDate", "2024-01-01".into());
        assert_eq!(later(java.clone()), Ok(()));
        let before = JobParameters::new().with_parameter("n", java, true);
        let error = before
            .validate(Some(RepositoryLayout::V4_3))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("4.3 has no parameters of type `java.time.LocalDate`"),
            "{error}"
        );
        assert!(
            later(ParameterValue::Null(ParameterType::Long))
                .unwrap_err()
                .contains("no parameters that are null")
        );
    }
}
