//! NATS JetStream: streams are read without acknowledging, by the sequence of their messages.

mod connection;
mod consumer;
mod reader;
mod writer;

pub use self::connection::NatsConnection;
pub use self::reader::{NatsItemReader, NatsPosition};
pub use self::writer::NatsItemWriter;

/// An error of a request.
#[derive(Debug)]
enum Fault {
    /// The step has to stop.
    Stopped,
    /// It may succeed at another attempt.
    Passing(String),
    /// It would fail again.
    Lasting(String),
}

impl Fault {
    /// Returns the message.
    fn into_text(self) -> String {
        match self {
            Self::Stopped => "the step was stopped".to_owned(),
            Self::Passing(text) | Self::Lasting(text) => text,
        }
    }
}
