//! NATS JetStream: streams are read without acknowledging, by the sequence of their messages.

mod connection;
mod consumer;
mod reader;
mod writer;

use batch_items::Record;
use batch_runtime::prelude::*;

pub use self::connection::NatsConnection;
pub use self::reader::{NatsItemReader, NatsPosition};
pub use self::writer::NatsItemWriter;

/// `natsRecordReader`: the JSON objects of a stream of NATS JetStream.
#[item_reader("natsRecordReader")]
pub type NatsRecordReader = NatsItemReader<Record>;

/// `recordNatsWriter`: JSON objects in streams of NATS JetStream.
#[item_writer("recordNatsWriter")]
pub type RecordNatsWriter = NatsItemWriter<Record>;
