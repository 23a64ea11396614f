//! The payloads that a collector sends to the analyzer.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checkpoint::Externalizable;
use crate::error::BatchError;

/// A payload that a collector sends to the analyzer, as JSON text: it may come from another process. Not persisted.
// Spec: SUBJOB-17
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectorData {
    payload: String,
    type_name: Cow<'static, str>,
}

impl CollectorData {
    /// Encodes a payload.
    ///
    /// # Errors
    /// If serde cannot serialize it as JSON.
    pub fn new<P: Externalizable>(payload: &P) -> Result<Self, BatchError> {
        let type_name = std::any::type_name::<P>();
        let payload = serde_json::to_string(payload).map_err(|error| {
            BatchError::msg(format!("the payload cannot be sent as `{type_name}`: {error}"))
        })?;
        Ok(Self {
            payload,
            type_name: type_name.into(),
        })
    }

    /// Decodes the payload as the type that the analyzer's method names.
    ///
    /// # Errors
    /// If it has another type.
    // Spec: PALG-11
    pub fn take<P: Externalizable>(self) -> Result<P, BatchError> {
        let Self { payload, type_name } = self;
        let asked = std::any::type_name::<P>();
        if type_name != asked {
            return Err(BatchError::msg(format!(
                "the analyzer takes `{asked}`, but the collector sent `{type_name}`"
            )));
        }
        serde_json::from_str(&payload)
            .map_err(|error| BatchError::msg(format!("the payload cannot be received as `{asked}`: {error}")))
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

    // Spec: PALG-11
    #[test]
    fn a_payload_of_another_type_is_an_error_that_names_both() {
        let data = CollectorData::new(&7_u32).unwrap();
        assert_eq!(data.clone().take::<u32>().unwrap(), 7);
        let error = data.take::<String>().unwrap_err().to_string();
        assert!(error.contains("`u32`") && error.contains("String"), "{error}");
    }

    #[test]
    fn a_payload_travels_as_text() {
        let data = CollectorData::new(&vec!["a".to_owned()]).unwrap();
        let text = serde_json::to_string(&data).unwrap();
        let arrived: CollectorData = serde_json::from_str(&text).unwrap();
        assert_eq!(arrived, data);
        assert_eq!(arrived.take::<Vec<String>>().unwrap(), ["a"]);
    }
}
