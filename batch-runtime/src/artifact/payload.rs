//! The payloads on their way from a collector to the analyzer.

use std::any::Any;
use std::fmt;

use crate::checkpoint::Externalizable;
use crate::error::BatchError;

/// A payload that a collector sends to the analyzer. Not persisted. Spec: SUBJOB-17
pub struct CollectorData {
    value: Box<dyn Any + Send>,
    type_name: &'static str,
}

impl CollectorData {
    /// Wraps a payload.
    pub fn new<P: Externalizable>(payload: P) -> Self {
        Self {
            value: Box::new(payload),
            type_name: std::any::type_name::<P>(),
        }
    }

    /// Returns the payload as the type that the analyzer's method names.
    ///
    /// # Errors
    /// If it has another type.
    ///
    /// Spec: PALG-11
    pub fn take<P: Externalizable>(self) -> Result<P, BatchError> {
        let Self { value, type_name } = self;
        value.downcast().map(|payload| *payload).map_err(|_| {
            let asked = std::any::type_name::<P>();
            BatchError::msg(format!(
                "the analyzer takes `{asked}`, but the collector sent `{type_name}`"
            ))
        })
    }
}

impl fmt::Debug for CollectorData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CollectorData({})", self.type_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: PALG-11
    #[test]
    fn a_payload_of_another_type_is_an_error_that_names_both() {
        assert_eq!(CollectorData::new(7_u32).take::<u32>().unwrap(), 7);
        let error = CollectorData::new(7_u32)
            .take::<String>()
            .unwrap_err()
            .to_string();
        assert!(error.contains("`u32`") && error.contains("String"), "{error}");
    }
}
