//! [Apache Kafka](https://kafka.apache.org) as the input and output of batch jobs: the protocol of brokers since version 2.1, without consumer
//! groups.
//!
//! The checkpoint of a [`KafkaItemReader`] has the position in each partition, so each message is an item once, wherever the process dies. The
//! guide of the repository has a page about queues. In Job XML alone there are `kafkaRecordReader`, `recordKafkaWriter`
//! and `kafkaPartitions`, once the program names this crate: `use batch_kafka as _;`.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories, as of `batch-runtime` |

#![cfg_attr(docsrs, feature(doc_cfg))]
// `rdkafka` 0.39 does not return the id of a topic, so a restart could not tell that the topic was deleted and created again
// (`checkpoints::a_queue_that_is_created_again_is_noticed` fails). Try again when it exposes `rd_kafka_DescribeTopics`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

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

pub use address::KafkaConnection;
pub use partitions::KafkaPartitions;
pub use reader::{KafkaItemReader, KafkaPosition};
pub use writer::KafkaItemWriter;

/// `kafkaRecordReader`: the JSON objects of a topic.
#[batch_runtime::item_reader("kafkaRecordReader")]
pub type KafkaRecordReader = KafkaItemReader<batch_items::Record>;

/// `recordKafkaWriter`: JSON objects in a topic.
#[batch_runtime::item_writer("recordKafkaWriter")]
pub type RecordKafkaWriter = KafkaItemWriter<batch_items::Record>;
