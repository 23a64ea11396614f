//! Why a request to a broker failed.

use kafka_protocol::ResponseError;

/// An error of a request.
#[derive(Debug)]
pub(super) enum Fault {
    /// The step has to stop.
    Stopped,
    /// It may succeed at another attempt: the connection is lost, or the partition has another leader.
    Passing(String),
    /// It would fail again.
    Lasting(String),
}

impl Fault {
    /// Returns the fault of an error code in a response about `what`; `None` for success.
    pub(super) fn of_code(code: i16, what: &str) -> Option<Self> {
        let error = ResponseError::try_from_code(code)?;
        let text = format!("{what}: the broker reports {error}");
        Some(match error {
            ResponseError::TopicAuthorizationFailed => Self::Lasting(format!(
                "{text}; permit this user to describe the topic, and to read or write it"
            )),
            ResponseError::ClusterAuthorizationFailed => {
                Self::Lasting(format!("{text}; permit it to this user"))
            }
            error if error.is_retriable() => Self::Passing(text),
            _ => Self::Lasting(text),
        })
    }

    /// Returns the message.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Stopped => "the step was stopped".to_owned(),
            Self::Passing(text) | Self::Lasting(text) => text,
        }
    }
}
