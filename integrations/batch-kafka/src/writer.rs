//! The writer of a topic.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use batch_items::compose::WriteItems;
use batch_items::queue::{EncodeMessage, Fault, Headers, JsonMessages, Template, Waiting, WriteError};
use batch_items::{EncodeError, ResourceError};
use batch_runtime::BatchArtifact;
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use serde::Serialize;

use super::address::KafkaConnection;
use super::cluster::Cluster;
use super::partition::of_key;
use super::produce::{Outgoing, Producer};

/// Writes each item as a message of a topic, at least once.
///
/// It has the properties of [`KafkaConnection`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `topic` | required | the topic |
/// | `key` | none | the key, a text with fields of the item such as `{region}-{number}` |
/// | `headers` | none | headers, separated by `;`: `source=billing; region={region}` |
/// | `compression` | `none` | `none`, `gzip`, `snappy`, `lz4` or `zstd` |
///
/// **A list of items is written when all replicas in sync have stored it** (`acks=all`), so before its chunk commits. If the process
/// dies between the two, or the chunk is rolled back, a restart writes the messages of the chunk again: consumers may see them twice, and
/// recognize that by a key or a field that identifies the item. While the process lives, a message that is sent again after a lost connection is stored
/// once (an idempotent producer).
///
/// A message with a key goes to the partition that Kafka's own producers choose. Without a key, each list goes to the next partition. A
/// message has no key if one of the fields of `key` is null. Items that are not messages are an [`EncodeError`](batch_items::EncodeError) before
/// any message of their list is sent; a message that is too large for the broker is one, too.
///
/// ```
/// use batch_kafka::KafkaItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Payment {
///     number: String,
///     cents: i64,
/// }
///
/// #[item_writer("PaymentWriter")]
/// type PaymentWriter = KafkaItemWriter<Payment>;
/// ```
///
/// ```xml
/// <chunk reader="PaymentReader" writer="PaymentWriter" commit-interval="1000">
///   <properties>
///     <property name="servers" value="kafka-1:9092,kafka-2:9092" target="writer"/>
///     <property name="topic" value="payments" target="writer"/>
///     <property name="key" value="{number}" target="writer"/>
///   </properties>
/// </chunk>
/// ```
// Spec: QUEUE-07 to QUEUE-09
#[derive(BatchArtifact)]
pub struct KafkaItemWriter<T, F = JsonMessages> {
    #[batch_artifact]
    connection: KafkaConnection,
    #[batch_property(name = "topic")]
    topic: String,
    #[batch_property(name = "key")]
    key: Option<Template>,
    #[batch_property(name = "headers", value = "")]
    headers: Headers,
    #[batch_property(name = "compression", value = "none")]
    compression: Compression,
    #[batch_artifact]
    format: F,
    #[batch_artifact]
    waiting: Waiting,
    open: Option<(Cluster, Producer)>,
    /// The number of lists written, which chooses the partition of messages without a key.
    lists: usize,
    item: PhantomData<fn(T)>,
}

/// How batches are compressed: the property `compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

batch_items::choices! {
    Compression { "none" => None, "gzip" => Gzip, "snappy" => Snappy, "lz4" => Lz4, "zstd" => Zstd }
}

impl From<Compression> for kafka_protocol::records::Compression {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::None,
            Compression::Gzip => Self::Gzip,
            Compression::Snappy => Self::Snappy,
            Compression::Lz4 => Self::Lz4,
            Compression::Zstd => Self::Zstd,
        }
    }
}

#[item_writer]
impl<T, F> KafkaItemWriter<T, F>
where
    T: Serialize + Send + 'static,
    F: EncodeMessage<T>,
{
    /// Connects to the cluster.
    #[open]
    pub fn open(&mut self, _checkpoint: Option<()>) -> Result<(), ResourceError> {
        let topic = self.connection.dataset(&self.topic);
        self.waiting.report(DatasetRole::Output, topic);
        let opened = self.connect();
        self.open = Some(opened.map_err(|fault| self.fail(fault))?);
        Ok(())
    }

    /// Writes items, and waits until they are stored.
    #[write_items]
    pub fn write(&mut self, items: &[T]) -> Result<(), BatchError> {
        self.write_each(items.iter())
    }

    /// Returns nothing: what is written is not part of a checkpoint.
    #[get_checkpoint_info]
    pub fn checkpoint(&self) {}

    /// Closes the connections.
    #[close]
    pub fn close(&mut self) {
        self.open = None;
    }

    fn connect(&self) -> Result<(Cluster, Producer), Fault> {
        let access = self.connection.access().map_err(Fault::Permanent)?;
        let mut cluster = Cluster::connect(access, &self.topic, &self.waiting)?;
        let producer = Producer::new(&mut cluster, self.compression.into(), &self.waiting)?;
        Ok((cluster, producer))
    }

    fn place(&self) -> String {
        format!("the topic `{}` at {}", self.topic, self.connection.shown())
    }

    fn fail(&self, fault: Fault) -> ResourceError {
        ResourceError::new(format!("write to {}", self.place()), fault.into_text())
    }

    fn write_each<'a>(&mut self, items: impl Iterator<Item = &'a T>) -> Result<(), BatchError> {
        let mut messages = Vec::new();
        for (index, item) in items.enumerate() {
            let message = self.message(item);
            let failed = |cause: String| EncodeError::of_chunk(self.place(), index, cause);
            messages.push(message.map_err(failed)?);
        }
        match self.send(&messages) {
            Ok(()) => Ok(()),
            Err(WriteError::Fault(fault)) => Err(self.fail(fault).into()),
            Err(WriteError::TooLarge(index)) => {
                let bytes = messages[index].value.len();
                let cause = format!(
                    "the message of {bytes} bytes is larger than the broker accepts; raise `max.message.bytes` of the topic"
                );
                Err(EncodeError::of_chunk(self.place(), index, cause))
            }
        }
    }

    fn message(&mut self, item: &T) -> Result<Outgoing, String> {
        let mut message = Outgoing::default();
        let encoded = self.format.encode(item, &mut message.value);
        encoded.map_err(|error| error.to_string())?;
        let has_fields = self.headers.has_fields() || self.key.as_ref().is_some_and(Template::has_fields);
        let fields = match has_fields {
            true => serde_json::to_value(item).map_err(|error| error.to_string())?,
            false => serde_json::Value::Null,
        };
        if let Some(key) = &self.key {
            let key = key.text(&fields).map_err(|problem| format!("`key`: {problem}"))?;
            message.key = key.map(String::into_bytes);
        }
        let headers = self
            .headers
            .values(&fields)
            .map_err(|problem| format!("`headers`: {problem}"))?;
        message.headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Ok(message)
    }

    fn send(&mut self, messages: &[Outgoing]) -> Result<(), WriteError> {
        let Some((cluster, producer)) = &mut self.open else {
            return Err(Fault::Permanent("the writer is not open".to_owned()).into());
        };
        let partitions: Vec<i32> = cluster.partitions().collect();
        let mut lists: BTreeMap<i32, Vec<(usize, &Outgoing)>> = BTreeMap::new();
        for (index, message) in messages.iter().enumerate() {
            let chosen = match &message.key {
                Some(key) => of_key(key, partitions.len()),
                None => self.lists % partitions.len(),
            };
            lists
                .entry(partitions[chosen])
                .or_default()
                .push((index, message));
        }
        self.lists = self.lists.wrapping_add(1);
        for (partition, list) in lists {
            producer.write(cluster, partition, &list, &self.waiting)?;
        }
        Ok(())
    }
}

impl<T, F> WriteItems<T> for KafkaItemWriter<T, F>
where
    T: Serialize + Send + 'static,
    F: EncodeMessage<T>,
{
    type Position = ();

    fn open(&mut self, checkpoint: Option<()>) -> Result<(), BatchError> {
        Ok(self.open(checkpoint)?)
    }

    fn write(&mut self, items: &[&T], _: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_each(items.iter().copied())
    }

    fn position(&mut self) -> Result<(), BatchError> {
        Ok(())
    }

    fn close(&mut self) {
        self.close();
    }
}
