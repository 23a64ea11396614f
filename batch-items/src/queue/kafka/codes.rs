//! The error codes of brokers.

use kafka_protocol::ResponseError;

use super::super::fault::Fault;

impl Fault {
    /// Returns the fault of an error code in a response about `what`; `None` for success.
    pub(super) fn of_code(code: i16, what: &str) -> Option<Self> {
        let error = ResponseError::try_from_code(code)?;
        let text = format!("{what}: the broker reports {error}");
        Some(match error {
            ResponseError::TopicAuthorizationFailed => Self::Permanent(format!(
                "{text}; permit this user to describe the topic, and to read or write it"
            )),
            ResponseError::ClusterAuthorizationFailed => {
                Self::Permanent(format!("{text}; permit it to this user"))
            }
            error if error.is_retriable() => Self::Transient(text),
            _ => Self::Permanent(text),
        })
    }
}
