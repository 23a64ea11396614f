//! Apache Kafka: the protocol of brokers since version 2.1, without consumer groups.
//!
//! The client is written here, on top of the messages of `kafka-protocol`, because a position has to be exact: it passes over markers
//! and aborted messages of transactions, which the clients in Rust return as messages, or hide together with their offsets.

mod address;
mod cluster;
mod codes;
mod connection;
mod fetch;
mod partition;
mod partitions;
mod produce;
mod reader;
mod sasl;
mod tls;
mod writer;

pub use self::address::KafkaConnection;
pub use self::partitions::KafkaPartitions;
pub use self::reader::{KafkaItemReader, KafkaPosition};
pub use self::writer::KafkaItemWriter;
