//! Reading messages, and their place among everything that is in a partition.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use batch_items::queue::{Fault, Waiting};
use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use kafka_protocol::records::RecordBatchDecoder;

use super::cluster::{Cluster, NO_REPLICA, READ_COMMITTED};
use super::codes::fault_of;

/// The most bytes that a broker sends in a response, and of a partition. The first batch is sent whole, whatever its size.
const RESPONSE_BYTES: i32 = 16 << 20;
const PARTITION_BYTES: i32 = 1 << 20;

/// What a reader takes from a partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Message(Message),
    /// No message, but what transactions and compaction leave: the offset after it.
    Nothing {
        next: i64,
    },
}

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) offset: i64,
    pub(super) key: Option<Bytes>,
    pub(super) value: Option<Bytes>,
}

/// The batches of a partition that were fetched and are not read yet.
#[derive(Default)]
pub(super) struct Fetched {
    batches: Bytes,
    entries: VecDeque<Entry>,
    /// The offset that was asked for. The first batch may begin before it.
    from: i64,
    /// The transactions that were aborted: their producers, by the offset of the first message.
    aborted: BTreeSet<(i64, i64)>,
    /// The producers of aborted transactions at the current place.
    aborting: BTreeSet<i64>,
}

/// The result of a fetch from one partition.
pub(super) enum Fetch {
    Batches(Fetched),
    /// The offset is not there.
    OutOfRange,
}

impl Cluster {
    /// Fetches messages of each partition from an offset on. Waits for `wait` at most if there are none.
    pub(super) fn fetch(
        &mut self,
        from: &BTreeMap<i32, i64>,
        wait: Duration,
        waiting: &Waiting,
    ) -> Result<BTreeMap<i32, Fetch>, Fault> {
        let result = self.attempt(waiting, |cluster| cluster.fetch_once(from, wait, waiting));
        if matches!(result, Err(Fault::Stopped)) {
            // Responses may be under way.
            self.disconnect();
        }
        result
    }

    fn fetch_once(
        &mut self,
        from: &BTreeMap<i32, i64>,
        wait: Duration,
        waiting: &Waiting,
    ) -> Result<BTreeMap<i32, Fetch>, Fault> {
        let partitions: Vec<i32> = from.keys().copied().collect();
        // All leaders wait at the same time.
        let mut sent = Vec::new();
        for (leader, partitions) in self.by_leader(&partitions)? {
            let request = self.request(&partitions, from, wait);
            sent.push((leader, self.connection(leader, waiting)?.send(&request)?));
        }
        let mut fetched = BTreeMap::new();
        for (leader, sent) in sent {
            let connection = self.connection(leader, waiting)?;
            let response = connection.receive::<FetchRequest>(&sent, wait, waiting)?;
            self.take(response, from, &mut fetched)?;
        }
        Ok(fetched)
    }

    fn request(&self, partitions: &[i32], from: &BTreeMap<i32, i64>, wait: Duration) -> FetchRequest {
        let partitions = partitions.iter().map(|partition| {
            FetchPartition::default()
                .with_partition(*partition)
                .with_current_leader_epoch(-1)
                .with_fetch_offset(from[partition])
                .with_partition_max_bytes(PARTITION_BYTES)
        });
        let topic = FetchTopic::default()
            .with_topic(self.topic().clone())
            .with_partitions(partitions.collect());
        FetchRequest::default()
            .with_replica_id(NO_REPLICA.into())
            .with_max_wait_ms(i32::try_from(wait.as_millis()).unwrap_or(i32::MAX))
            .with_min_bytes(1)
            .with_max_bytes(RESPONSE_BYTES)
            .with_isolation_level(READ_COMMITTED)
            .with_session_epoch(-1)
            .with_topics(vec![topic])
    }

    fn take(
        &self,
        response: FetchResponse,
        from: &BTreeMap<i32, i64>,
        fetched: &mut BTreeMap<i32, Fetch>,
    ) -> Result<(), Fault> {
        let what = format!("cannot read the topic `{}`", self.topic().as_str());
        if let Some(fault) = fault_of(response.error_code, &what) {
            return Err(fault);
        }
        for data in response.responses.into_iter().flat_map(|topic| topic.partitions) {
            let number = data.partition_index;
            let Some(from) = from.get(&number) else { continue };
            let fetch = if data.error_code == ResponseError::OffsetOutOfRange.code() {
                Fetch::OutOfRange
            } else {
                let what = format!("cannot read {}", self.place(number));
                match fault_of(data.error_code, &what) {
                    Some(fault) => return Err(fault),
                    None => Fetch::Batches(Fetched::new(data, *from)),
                }
            };
            fetched.insert(number, fetch);
        }
        Ok(())
    }
}

impl Fetched {
    fn new(data: PartitionData, from: i64) -> Self {
        let aborted = data.aborted_transactions.unwrap_or_default();
        Self {
            batches: data.records.unwrap_or_default(),
            from,
            aborted: aborted
                .iter()
                .map(|aborted| (aborted.first_offset, aborted.producer_id.0))
                .collect(),
            ..Self::default()
        }
    }

    /// Returns the next entry; `None` after the last one that is complete. The error is about a batch that cannot be decoded.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, String> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Ok(Some(entry));
            }
            let Some(batch) = self.next_batch() else {
                return Ok(None);
            };
            self.decode(batch)?;
        }
    }

    /// Takes a batch; a broker may cut the last one off.
    fn next_batch(&mut self) -> Option<Bytes> {
        const BEFORE_LENGTH: usize = 8;
        const BEFORE_CONTENT: usize = 12;
        let length = self.batches.get(BEFORE_LENGTH..BEFORE_CONTENT)?;
        let length = i32::from_be_bytes(length.try_into().ok()?);
        let end = BEFORE_CONTENT.checked_add(usize::try_from(length).ok()?)?;
        (end <= self.batches.len()).then(|| self.batches.split_to(end))
    }

    fn decode(&mut self, mut batch: Bytes) -> Result<(), String> {
        let next = end_of_batch(&batch).ok_or("a batch is too short")?;
        if next <= self.from {
            return Ok(());
        }
        let records = RecordBatchDecoder::decode(&mut batch).map_err(|error| format!("{error:#}"))?;
        for record in records.records {
            let offset = record.offset;
            while let Some((first, producer)) = self
                .aborted
                .first()
                .copied()
                .filter(|(first, _)| *first <= offset)
            {
                self.aborted.remove(&(first, producer));
                self.aborting.insert(producer);
            }
            let is_aborted = record.transactional && self.aborting.contains(&record.producer_id);
            if record.control {
                if is_abort_marker(record.key.as_deref()) {
                    self.aborting.remove(&record.producer_id);
                }
            } else if !is_aborted && offset >= self.from {
                self.entries.push_back(Entry::Message(Message {
                    offset,
                    key: record.key,
                    value: record.value,
                }));
            }
        }
        // Behind the last message there may be offsets without one.
        self.entries.push_back(Entry::Nothing { next });
        Ok(())
    }
}

/// Returns the offset after a batch, whatever is left of it.
fn end_of_batch(batch: &[u8]) -> Option<i64> {
    let base = i64::from_be_bytes(batch.get(..8)?.try_into().ok()?);
    let last = i32::from_be_bytes(batch.get(23..27)?.try_into().ok()?);
    base.checked_add(i64::from(last))?.checked_add(1)
}

/// Returns whether a control record is the end of an aborted transaction: its key is a version and a type.
fn is_abort_marker(key: Option<&[u8]>) -> bool {
    key.and_then(|key| key.get(2..4)) == Some(&[0, 0])
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use kafka_protocol::indexmap::IndexMap;
    use kafka_protocol::messages::fetch_response::AbortedTransaction;
    use kafka_protocol::records::{
        Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
    };

    use super::*;

    fn record(offset: i64, producer: i64, value: &'static str) -> Record {
        Record {
            transactional: producer >= 0,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: 0,
            producer_id: producer,
            producer_epoch: 0,
            timestamp_type: TimestampType::Creation,
            offset,
            sequence: -1,
            timestamp: 0,
            key: None,
            value: Some(value.into()),
            headers: IndexMap::new(),
        }
    }

    fn marker(offset: i64, producer: i64, kind: u8) -> Record {
        Record {
            control: true,
            key: Some(vec![0, 0, 0, kind].into()),
            ..record(offset, producer, "")
        }
    }

    fn batch(records: &[Record], compression: Compression) -> BytesMut {
        let mut batch = BytesMut::new();
        let options = RecordEncodeOptions {
            version: 2,
            compression,
        };
        RecordBatchEncoder::encode(&mut batch, records, &options).unwrap();
        batch
    }

    fn fetched(batches: &[BytesMut], from: i64, aborted: &[(i64, i64)]) -> Fetched {
        let aborted = aborted.iter().map(|(producer, first)| {
            AbortedTransaction::default()
                .with_producer_id((*producer).into())
                .with_first_offset(*first)
        });
        let data = PartitionData::default()
            .with_records(Some(batches.concat().into()))
            .with_aborted_transactions(Some(aborted.collect()));
        Fetched::new(data, from)
    }

    /// Returns the offsets of the messages, and the position at the end.
    fn read(mut fetched: Fetched) -> (Vec<i64>, i64) {
        let (mut offsets, mut position) = (Vec::new(), -1);
        while let Some(entry) = fetched.next().unwrap() {
            match entry {
                Entry::Message(message) => {
                    position = message.offset + 1;
                    offsets.push(message.offset);
                }
                Entry::Nothing { next } => position = next,
            }
        }
        (offsets, position)
    }

    // Spec: QUEUE-01
    #[test]
    fn aborted_messages_and_markers_are_no_messages() {
        let none = Compression::None;
        let batches = [
            batch(&[record(0, -1, "a"), record(1, -1, "b")], Compression::Gzip),
            batch(&[record(2, 7, "aborted")], none),
            batch(&[record(3, 8, "committed")], Compression::Zstd),
            batch(&[marker(4, 7, 0)], none),
            // The producer's next transaction.
            batch(&[record(5, 7, "committed")], Compression::Lz4),
            batch(&[marker(6, 8, 1)], none),
            batch(&[marker(7, 7, 1)], none),
        ];
        assert_eq!(read(fetched(&batches, 0, &[(7, 2)])), (vec![0, 1, 3, 5], 8));
        assert_eq!(read(fetched(&batches, 1, &[(7, 2)])), (vec![1, 3, 5], 8));
        assert_eq!(read(fetched(&batches[5..], 6, &[])), (vec![], 8));
    }

    // Spec: QUEUE-01
    #[test]
    fn a_batch_that_is_cut_off_is_not_read() {
        let whole = batch(&[record(5, -1, "a")], Compression::None);
        let mut half = batch(&[record(6, -1, "b")], Compression::None);
        half.truncate(40);
        assert_eq!(read(fetched(&[whole, half], 5, &[])), (vec![5], 6));
        assert_eq!(read(fetched(&[], 5, &[])), (vec![], -1));
    }

    #[test]
    fn a_damaged_batch_is_an_error() {
        let mut damaged = batch(&[record(5, -1, "a")], Compression::None);
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        let error = fetched(&[damaged], 5, &[]).next().unwrap_err();
        assert!(error.contains("redundancy"), "{error}");
    }
}
