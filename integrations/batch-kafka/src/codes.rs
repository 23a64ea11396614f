//! The error codes of brokers.

use batch_items::queue::Fault;
use kafka_protocol::ResponseError;

/// Returns the fault of an error code in a response about `what`; `None` for success.
pub(super) fn fault_of(code: i16, what: &str) -> Option<Fault> {
    let error = ResponseError::try_from_code(code)?;
    let text = format!("{what}: the broker reports {error}");
    Some(match error {
        ResponseError::TopicAuthorizationFailed => Fault::Permanent(format!(
            "{text}; permit this user to describe the topic, and to read or write it"
        )),
        ResponseError::ClusterAuthorizationFailed => {
            Fault::Permanent(format!("{text}; permit it to this user"))
        }
        error if error.is_retriable() => Fault::Transient(text),
        _ => Fault::Permanent(text),
    })
}
