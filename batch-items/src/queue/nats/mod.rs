//! NATS JetStream: streams are read without acknowledging, by the sequence of their messages.

mod connection;
mod consumer;
mod reader;
mod writer;

pub use self::connection::NatsConnection;
pub use self::reader::{NatsItemReader, NatsPosition};
pub use self::writer::NatsItemWriter;
