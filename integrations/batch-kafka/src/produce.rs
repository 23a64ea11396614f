//! Writing messages, until the brokers have stored them.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use batch_items::queue::{Fault, Waiting, WriteError};
use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{InitProducerIdRequest, ProduceRequest};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Record,
    RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

use super::cluster::Cluster;
use super::codes::fault_of;

/// All replicas that are in sync have to store a message.
const ALL_REPLICAS: i16 = -1;
/// The time that the leader waits for them.
const REPLICATION_MS: i32 = 10_000;
/// The bytes of a batch, before compression. By default brokers accept 1 MiB.
const BATCH_BYTES: usize = 900_000;
/// The bytes of a record beside its content, at most.
const OVERHEAD: usize = 70;

/// A message to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Vec<u8>,
    pub(super) headers: Vec<(String, String)>,
}

impl Outgoing {
    fn size(&self) -> usize {
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len() + 10);
        OVERHEAD + self.key.as_ref().map_or(0, Vec::len) + self.value.len() + headers.sum::<usize>()
    }
}

/// A producer. While it lives, brokers store a batch once, however often it is sent.
pub(super) struct Producer {
    id: i64,
    epoch: i16,
    /// The number of the next message in each partition.
    sequences: BTreeMap<i32, i32>,
    compression: Compression,
    /// True if it is not known whether a batch is stored. Another one must not get its numbers, because it would not be stored.
    is_uncertain: bool,
}

/// The result of one batch.
enum Stored {
    Yes,
    TooLarge,
    /// The broker does not know the producer any more.
    UnknownProducer,
}

impl Producer {
    /// Gets an id from the cluster.
    pub(super) fn new(
        cluster: &mut Cluster,
        compression: Compression,
        waiting: &Waiting,
    ) -> Result<Self, Fault> {
        let mut producer = Self {
            id: NO_PRODUCER_ID,
            epoch: NO_PRODUCER_EPOCH,
            sequences: BTreeMap::new(),
            compression,
            is_uncertain: false,
        };
        producer.renew(cluster, waiting)?;
        Ok(producer)
    }

    fn renew(&mut self, cluster: &mut Cluster, waiting: &Waiting) -> Result<(), Fault> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_producer_id(NO_PRODUCER_ID.into())
            .with_producer_epoch(NO_PRODUCER_EPOCH);
        let response = cluster.attempt(waiting, |cluster| {
            let broker = cluster.any_broker()?;
            let response = cluster.connection(broker, waiting)?.call(&request, waiting)?;
            match fault_of(response.error_code, "cannot get the id of a producer") {
                Some(Fault::Transient(problem)) => Err(Fault::Transient(problem)),
                _ => Ok(response),
            }
        })?;
        self.sequences.clear();
        self.is_uncertain = false;
        match ResponseError::try_from_code(response.error_code) {
            None => (self.id, self.epoch) = (response.producer_id.0, response.producer_epoch),
            Some(error) => {
                // Before Kafka 3.0 it is a separate permission.
                tracing::debug!(target: "batch.kafka", %error, "no producer id: a batch that is sent again may be there twice");
                (self.id, self.epoch) = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH);
            }
        }
        Ok(())
    }

    /// Writes messages to a partition, and waits until they are stored. `numbers` are their places in the list of the caller.
    pub(super) fn write(
        &mut self,
        cluster: &mut Cluster,
        partition: i32,
        messages: &[(usize, &Outgoing)],
        waiting: &Waiting,
    ) -> Result<(), WriteError> {
        if self.is_uncertain {
            self.renew(cluster, waiting)?;
        }
        let mut rest = messages;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|(_, message)| {
                bytes += message.size();
                bytes <= BATCH_BYTES
            });
            let (batch, after) = rest.split_at(fits.count().max(1));
            rest = after;
            self.write_batch(cluster, partition, batch, waiting)?;
        }
        Ok(())
    }

    fn write_batch(
        &mut self,
        cluster: &mut Cluster,
        partition: i32,
        batch: &[(usize, &Outgoing)],
        waiting: &Waiting,
    ) -> Result<(), WriteError> {
        let mut renewed = false;
        loop {
            let sequence = match self.id {
                NO_PRODUCER_ID => NO_SEQUENCE,
                _ => *self.sequences.entry(partition).or_default(),
            };
            let records = self.encode(batch, sequence)?;
            let stored = cluster.attempt(waiting, |cluster| send(cluster, partition, &records, waiting));
            if stored.is_err() {
                // Responses may be under way.
                cluster.disconnect();
                self.is_uncertain = true;
            }
            match stored? {
                Stored::Yes => break,
                Stored::TooLarge if batch.len() == 1 => return Err(WriteError::TooLarge(batch[0].0)),
                Stored::TooLarge => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    self.write_batch(cluster, partition, first, waiting)?;
                    return self.write_batch(cluster, partition, second, waiting);
                }
                Stored::UnknownProducer if !renewed => {
                    renewed = true;
                    self.renew(cluster, waiting)?;
                }
                Stored::UnknownProducer => {
                    let place = cluster.place(partition);
                    return Err(Fault::Permanent(format!(
                        "{place} does not accept the numbers of this producer"
                    ))
                    .into());
                }
            }
        }
        if self.id != NO_PRODUCER_ID {
            let sequence = self.sequences.entry(partition).or_default();
            *sequence = after(*sequence, batch.len());
        }
        Ok(())
    }

    fn encode(&self, batch: &[(usize, &Outgoing)], sequence: i32) -> Result<Bytes, Fault> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let timestamp = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let records = batch.iter().zip(0_i32..).map(|((_, message), number)| Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            producer_id: self.id,
            producer_epoch: self.epoch,
            timestamp_type: TimestampType::Creation,
            offset: number.into(),
            // The encoder makes a batch of consecutive numbers.
            sequence: sequence.wrapping_add(number),
            timestamp,
            key: message.key.clone().map(Bytes::from),
            value: Some(Bytes::from(message.value.clone())),
            headers: headers(message),
        });
        let records: Vec<Record> = records.collect();
        let options = RecordEncodeOptions {
            version: 2,
            compression: self.compression,
        };
        let mut bytes = BytesMut::new();
        RecordBatchEncoder::encode(&mut bytes, &records, &options)
            .map_err(|error| Fault::Permanent(format!("the messages cannot be encoded: {error:#}")))?;
        Ok(bytes.freeze())
    }
}

fn headers(message: &Outgoing) -> IndexMap<StrBytes, Option<Bytes>> {
    let headers = message.headers.iter();
    let headers = headers.map(|(name, value)| {
        let name = StrBytes::from_string(name.clone());
        (name, Some(Bytes::from(value.clone().into_bytes())))
    });
    headers.collect()
}

/// Returns the number after this many messages. After the largest one comes 0.
fn after(sequence: i32, messages: usize) -> i32 {
    let next = (i64::from(sequence) + messages as i64) % (i64::from(i32::MAX) + 1);
    i32::try_from(next).unwrap_or(0)
}

/// Sends a batch to the leader of its partition.
fn send(cluster: &mut Cluster, partition: i32, records: &Bytes, waiting: &Waiting) -> Result<Stored, Fault> {
    let data = PartitionProduceData::default()
        .with_index(partition)
        .with_records(Some(records.clone()));
    let topic = TopicProduceData::default()
        .with_name(cluster.topic().clone())
        .with_partition_data(vec![data]);
    let request = ProduceRequest::default()
        .with_acks(ALL_REPLICAS)
        .with_timeout_ms(REPLICATION_MS)
        .with_topic_data(vec![topic]);
    let leaders = cluster.by_leader(&[partition])?;
    let leader = leaders.into_keys().next().unwrap_or_default();
    let response = cluster.connection(leader, waiting)?.call(&request, waiting)?;
    let mut partitions = response
        .responses
        .into_iter()
        .flat_map(|topic| topic.partition_responses);
    let place = cluster.place(partition);
    let Some(response) = partitions.next() else {
        return Err(Fault::Permanent(format!(
            "the broker does not say whether {place} has stored the messages"
        )));
    };
    let Some(error) = ResponseError::try_from_code(response.error_code) else {
        return Ok(Stored::Yes);
    };
    match error {
        // It is there from an earlier attempt.
        ResponseError::DuplicateSequenceNumber => Ok(Stored::Yes),
        ResponseError::MessageTooLarge | ResponseError::RecordListTooLarge => Ok(Stored::TooLarge),
        ResponseError::OutOfOrderSequenceNumber
        | ResponseError::UnknownProducerId
        | ResponseError::InvalidProducerEpoch => Ok(Stored::UnknownProducer),
        _ => {
            let reason = response
                .error_message
                .map(|reason| format!(" ({reason})"))
                .unwrap_or_default();
            let what = format!("cannot write to {place}{reason}");
            fault_of(response.error_code, &what).map_or(Ok(Stored::Yes), Err)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_messages_wrap_to_zero() {
        assert_eq!(after(0, 3), 3);
        assert_eq!(after(i32::MAX - 1, 1), i32::MAX);
        assert_eq!(after(i32::MAX, 1), 0);
        assert_eq!(after(i32::MAX - 1, 5), 3);
    }
}
