//! The reader of a topic.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Instant;

use batch_items::compose::ReadItems;
use batch_items::queue::{
    AddedFields, DecodeMessage, Fault, IfRemoved, JsonMessages, OpenError, POLL, Query, Start, Until,
    Waiting, load_records,
};
use batch_items::{ReadError, RecordError, ResourceError};
use batch_runtime::BatchArtifact;
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::address::KafkaConnection;
use super::cluster::{Cluster, OffsetOf, place, recreated};
use super::fetch::{Entry, Fetch, Fetched, Message};
use super::partition::Partitions;

/// Reads the messages of a topic as items of type `T`.
///
/// It has the properties of [`KafkaConnection`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `topic` | required | the topic |
/// | `partitions` | `all` | the partitions that are read, such as `0,2-5` |
/// | `start` | `earliest` | where partitions start without a checkpoint: `earliest`, or `latest` for messages that arrive from now on |
/// | `start.query` | none | a query on the database of the repository, with the columns `partition` and `offset`: where partitions start without a checkpoint, before `start` |
/// | `until` | `end` | the end of the run: `end`, the messages that are there when the step first starts; `idle 30s`, when none has arrived for that long; `items 1000`; or several of them, separated by commas, for the first that is reached |
/// | `if.removed` | `fail` | `continue`: messages that the broker has removed before they were read are not missed, but logged |
/// | `if.null` | `fail` | `skip`: messages without a value, which delete a key from a compacted topic, are not read; otherwise they are a [`RecordError`](batch_items::RecordError) |
/// | `partition.field`, `offset.field`, `key.field` | none | fields that items get in addition |
///
/// **The checkpoint is the next offset of each partition.** The reader uses no consumer group: nothing is stored at the broker, and what
/// is committed with the checkpoint, such as the rows of a [`TableItemWriter`](batch_items::TableItemWriter), has each message exactly once.
/// The offsets of `until` = `end` are part of the checkpoint, so a restart ends at the same messages. A restart whose offsets the
/// broker no longer has fails before it reads; so does one after the topic was deleted and created again.
///
/// The messages of a partition are read in their order. A fetch takes some of each partition, in the order of their numbers. Messages of
/// transactions are read when these are committed; messages of aborted ones are not read.
///
/// A message that is not an item is a [`RecordError`](batch_items::RecordError) with topic, partition and offset; a job may skip it.
///
/// The format `F` is [`JsonMessages`], [`TextMessages`](batch_items::queue::TextMessages), [`BinaryMessages`](batch_items::queue::BinaryMessages), or one
/// of the program.
///
/// ```
/// use batch_kafka::KafkaItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Payment {
///     number: String,
///     cents: i64,
/// }
///
/// #[item_reader("PaymentReader")]
/// type PaymentReader = KafkaItemReader<Payment>;
/// ```
///
/// ```xml
/// <chunk reader="PaymentReader" writer="PaymentWriter" commit-interval="1000">
///   <properties>
///     <property name="servers" value="kafka-1:9092,kafka-2:9092" target="reader"/>
///     <property name="topic" value="payments" target="reader"/>
///   </properties>
/// </chunk>
/// ```
// Spec: QUEUE-01 to QUEUE-06
#[derive(BatchArtifact)]
pub struct KafkaItemReader<T, F = JsonMessages> {
    #[batch_artifact]
    connection: KafkaConnection,
    #[batch_property(name = "topic")]
    topic: String,
    #[batch_property(name = "partitions", value = "all")]
    partitions: Partitions,
    #[batch_property(name = "start", value = "earliest")]
    start: Start,
    #[batch_property(name = "start.query")]
    start_query: Option<Query>,
    #[batch_property(name = "until", value = "end")]
    until: Until,
    #[batch_property(name = "if.removed", value = "fail")]
    if_removed: IfRemoved,
    #[batch_property(name = "if.null", value = "fail")]
    if_null: IfNull,
    #[batch_property(name = "partition.field")]
    partition_field: Option<String>,
    #[batch_property(name = "offset.field")]
    offset_field: Option<String>,
    #[batch_property(name = "key.field")]
    key_field: Option<String>,
    #[batch_artifact]
    format: F,
    #[batch_artifact]
    waiting: Waiting,
    /// `None` before the reader is open, and if a stop was requested meanwhile.
    cluster: Option<Cluster>,
    fetched: BTreeMap<i32, Fetched>,
    position: KafkaPosition,
    /// The partition of the last message.
    last: i32,
    /// The time of the first fetch without a message since the last one with a message.
    idle_since: Option<Instant>,
    item: PhantomData<fn() -> T>,
}

/// What becomes of a message without a value: the property `if.null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfNull {
    Fail,
    Skip,
}

batch_items::choices! {
    IfNull { "fail" => Fail, "skip" => Skip }
}

/// The checkpoint of a [`KafkaItemReader`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KafkaPosition {
    /// The topic.
    pub topic: String,
    /// Its id, if the brokers have ids of topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_id: Option<String>,
    /// The next offset of each partition. Empty if the reader was stopped before it knew them.
    pub next: BTreeMap<i32, i64>,
    /// The offsets where the run ends, if it ends at the messages that were there when it started.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub end: BTreeMap<i32, i64>,
    /// The number of items that were read.
    pub items: u64,
}

impl KafkaPosition {
    /// Returns whether a partition has been read to its end.
    fn is_done(&self, partition: i32) -> bool {
        let next = self.next.get(&partition);
        let end = self.end.get(&partition);
        end.is_some_and(|end| next.is_some_and(|next| next >= end))
    }

    /// Returns the number of offsets up to the end.
    fn left(&self) -> Option<u64> {
        let left = self.end.iter().map(|(partition, end)| {
            let next = self.next.get(partition)?;
            u64::try_from(end - next).ok().or(Some(0))
        });
        left.sum()
    }
}

#[item_reader(rewindable = true)]
impl<T, F> KafkaItemReader<T, F>
where
    T: Send + 'static,
    F: DecodeMessage<T>,
{
    /// Connects to the cluster, and positions at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<KafkaPosition>) -> Result<(), BatchError> {
        self.close();
        self.position = checkpoint.unwrap_or_default();
        let topic = self.connection.dataset(&self.topic);
        self.waiting.report(DatasetRole::Input, topic);
        match self.connect() {
            Ok(cluster) => self.cluster = Some(cluster),
            Err(error) => error.unless_stopped(|text| self.fail(text))?,
        }
        self.idle_since = None;
        Ok(())
    }

    /// Reads the next message.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<T>, BatchError> {
        while let Some((partition, message)) = self.next_message()? {
            if message.value.is_none() && self.if_null == IfNull::Skip {
                continue;
            }
            let item = self.item(partition, &message)?;
            self.position.items += 1;
            return Ok(Some(item));
        }
        Ok(None)
    }

    /// Returns the next offset of each partition.
    #[get_checkpoint_info]
    pub fn checkpoint(&self) -> KafkaPosition {
        self.position.clone()
    }

    /// Returns the number of messages, if the run ends at the messages that were there; messages of aborted transactions count, too.
    #[get_item_count]
    pub fn item_count(&self) -> Option<u64> {
        self.until.count(self.position.items, self.position.left())
    }

    /// Closes the connections.
    #[close]
    pub fn close(&mut self) {
        self.cluster = None;
        self.fetched.clear();
    }

    fn fail(&self, cause: impl Into<String>) -> ResourceError {
        let action = format!("read the topic `{}` at {}", self.topic, self.connection.shown());
        ResourceError::new(action, cause.into())
    }

    /// Connects, and completes the position.
    fn connect(&mut self) -> Result<Cluster, OpenError> {
        let access = self.connection.access().map_err(Fault::Permanent)?;
        let mut cluster = Cluster::connect(access, &self.topic, &self.waiting)?;
        let partitions = self
            .partitions
            .of(cluster.partitions())
            .map_err(Fault::Permanent)?;
        let earliest = cluster.offsets(OffsetOf::Earliest, &partitions, &self.waiting)?;
        let latest = cluster.offsets(OffsetOf::Latest, &partitions, &self.waiting)?;
        if self.position.next.is_empty() {
            self.start(&cluster, &earliest, &latest)?;
        } else {
            self.check_topic(&cluster).map_err(Fault::Permanent)?;
            self.check_partitions(&earliest).map_err(Fault::Permanent)?;
            // Partitions that are not in the checkpoint were added to the topic since.
            for (partition, first) in &earliest {
                self.position.next.entry(*partition).or_insert(*first);
            }
        }
        self.set_end(&latest);
        self.check_offsets(&earliest, &latest)?;
        Ok(cluster)
    }

    /// Sets the position of a first start.
    fn start(
        &mut self,
        cluster: &Cluster,
        earliest: &BTreeMap<i32, i64>,
        latest: &BTreeMap<i32, i64>,
    ) -> Result<(), OpenError> {
        let next = match self.start {
            Start::Earliest => earliest,
            Start::Latest => latest,
        };
        self.position = KafkaPosition {
            topic: self.topic.clone(),
            topic_id: cluster.topic_id.clone(),
            next: next.clone(),
            end: BTreeMap::new(),
            items: 0,
        };
        for (partition, offset) in self.queried()? {
            if let Some(next) = self.position.next.get_mut(&partition) {
                *next = offset;
            }
        }
        Ok(())
    }

    /// Returns the result of the query for the start.
    fn queried(&self) -> Result<Vec<(i32, i64)>, OpenError> {
        let Some(query) = &self.start_query else {
            return Ok(Vec::new());
        };
        let rows = load_records(&self.waiting, query);
        let rows = rows.map_err(|error| OpenError::Other(error.into()))?;
        let offsets = rows.iter().map(|row| {
            let number = |name: &str| row.get(name).and_then(|value| value.as_i64());
            let partition = number("partition").and_then(|number| i32::try_from(number).ok());
            partition.zip(number("offset")).ok_or_else(|| {
                let problem = format!("`start.query` has to return the numbers `partition` and `offset`, and has returned `{row}`");
                OpenError::Fault(Fault::Permanent(problem))
            })
        });
        offsets.collect()
    }

    fn check_topic(&self, cluster: &Cluster) -> Result<(), String> {
        let KafkaPosition { topic, topic_id, .. } = &self.position;
        if *topic != self.topic {
            return Err(format!(
                "the checkpoint is that of the topic `{topic}`; restart the job with this topic, or launch a new instance"
            ));
        }
        match topic_id {
            Some(_) if *topic_id != cluster.topic_id => Err(recreated(topic)),
            _ => Ok(()),
        }
    }

    /// Checks that the property `partitions` is the same as in the checkpoint: others would be read twice, or not to their end.
    fn check_partitions(&self, selected: &BTreeMap<i32, i64>) -> Result<(), String> {
        let known = &self.position.next;
        let left_out = known.keys().find(|partition| !selected.contains_key(partition));
        let added = selected.keys().find(|partition| !known.contains_key(partition));
        match left_out.or(added.filter(|_| self.partitions != Partitions::All)) {
            None => Ok(()),
            Some(partition) => Err(format!(
                "the checkpoint is that of other partitions of the topic, which differ in {partition}; restart the job with the same \
                 `partitions`, or launch a new instance"
            )),
        }
    }

    /// Sets the offsets where the run ends, unless an earlier execution has.
    fn set_end(&mut self, latest: &BTreeMap<i32, i64>) {
        if !self.until.end {
            self.position.end.clear();
        } else if self.position.end.is_empty() {
            self.position.end = latest.clone();
        } else {
            // Partitions that were added since have no messages that were there at the start.
            for (partition, next) in &self.position.next {
                self.position.end.entry(*partition).or_insert(*next);
            }
        }
    }

    /// Checks that the broker has the messages from the position on.
    fn check_offsets(
        &mut self,
        earliest: &BTreeMap<i32, i64>,
        latest: &BTreeMap<i32, i64>,
    ) -> Result<(), Fault> {
        let partitions: Vec<i32> = self.position.next.keys().copied().collect();
        for partition in partitions {
            let next = self.position.next[&partition];
            let (first, end) = (earliest[&partition], latest[&partition]);
            if next < first && !self.position.is_done(partition) {
                self.removed(partition, first)?;
            } else if next > end {
                return Err(Fault::Permanent(format!(
                    "{} ends at offset {end}, and the next message would be that of offset {next}: the broker has lost messages that \
                     were read, or it is another cluster; launch a new instance of the job to read what is there",
                    place(&self.topic, partition)
                )));
            }
        }
        Ok(())
    }

    /// Continues at the first message that is left, if the job accepts that.
    fn removed(&mut self, partition: i32, first: i64) -> Result<(), Fault> {
        let next = self.position.next[&partition];
        let place = place(&self.topic, partition);
        let missing = format!("the broker no longer has offset {next} of {place}, which begins at {first}");
        self.if_removed
            .check(&missing, first - next, "raise the retention of the topic")?;
        self.position.next.insert(partition, first);
        Ok(())
    }

    /// Returns the next message, and advances past it; `None` at the end of the run.
    fn next_message(&mut self) -> Result<Option<(i32, Message)>, BatchError> {
        loop {
            if self.until.is_enough(self.position.items) {
                return Ok(None);
            }
            if let Some(found) = self.next_fetched()? {
                return Ok(Some(found));
            }
            let open = self
                .position
                .next
                .iter()
                .filter(|(partition, _)| !self.position.is_done(**partition));
            let open: BTreeMap<i32, i64> = open.map(|(partition, next)| (*partition, *next)).collect();
            let is_idle = self.idle_since.is_some_and(|since| self.until.is_idle(since));
            if open.is_empty() || is_idle || self.waiting.is_stopping() {
                return Ok(None);
            }
            match self.fetch(&open) {
                Ok(()) => {}
                Err(Fault::Stopped) => return Ok(None),
                Err(fault) => return Err(self.fail(fault.into_text()).into()),
            }
        }
    }

    /// Returns the next message that was fetched.
    fn next_fetched(&mut self) -> Result<Option<(i32, Message)>, BatchError> {
        while let Some(mut entry) = self.fetched.first_entry() {
            let partition = *entry.key();
            let next = match entry.get_mut().next() {
                Ok(Some(_)) if self.position.is_done(partition) => None,
                Ok(next) => next,
                Err(problem) => {
                    let place = place(&self.topic, partition);
                    let next = self.position.next.get(&partition).copied().unwrap_or_default();
                    return Err(self
                        .fail(format!(
                            "the batch of {place} at offset {next} is damaged: {problem}"
                        ))
                        .into());
                }
            };
            match next {
                None => {
                    self.fetched.pop_first();
                }
                Some(Entry::Nothing { next }) => {
                    self.position.next.insert(partition, next);
                }
                Some(Entry::Message(message)) => {
                    self.last = partition;
                    self.idle_since = None;
                    self.position.next.insert(partition, message.offset + 1);
                    return Ok(Some((partition, message)));
                }
            }
        }
        Ok(None)
    }

    fn fetch(&mut self, from: &BTreeMap<i32, i64>) -> Result<(), Fault> {
        // A stop was requested while the reader was opened.
        let cluster = self.cluster.as_mut().ok_or(Fault::Stopped)?;
        let wait = self.idle_since.map_or(POLL, |since| self.until.wait(since, POLL));
        let fetched = cluster.fetch(from, wait, &self.waiting)?;
        for (partition, fetch) in fetched {
            match fetch {
                Fetch::Batches(batches) => {
                    self.fetched.insert(partition, batches);
                }
                Fetch::OutOfRange => self.out_of_range(partition)?,
            }
        }
        self.idle_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Finds out why the broker does not have an offset.
    fn out_of_range(&mut self, partition: i32) -> Result<(), Fault> {
        let cluster = self.cluster.as_mut().ok_or(Fault::Stopped)?;
        let earliest = cluster.offsets(OffsetOf::Earliest, &[partition], &self.waiting)?;
        let latest = cluster.offsets(OffsetOf::Latest, &[partition], &self.waiting)?;
        let next = self.position.next.get(&partition).copied().unwrap_or_default();
        match (earliest.get(&partition), latest.get(&partition)) {
            (Some(first), _) if next < *first => self.removed(partition, *first),
            (_, Some(end)) => Err(Fault::Permanent(format!(
                "{} ends at offset {end}, and the next message would be that of offset {next}: the broker has lost messages that were read",
                place(&self.topic, partition)
            ))),
            _ => Err(Fault::Permanent("the broker does not have the offset".to_owned())),
        }
    }

    fn item(&mut self, partition: i32, message: &Message) -> Result<T, ReadError> {
        let offset = u64::try_from(message.offset).unwrap_or_default();
        let (topic, raw) = (&self.topic, message.value.as_deref().unwrap_or_default());
        let bad = |cause| -> ReadError {
            RecordError::of_message(place(topic, partition), "offset", offset, cause, raw).into()
        };
        let Some(value) = &message.value else {
            return Err(bad(
                "the message has no value; `if.null` = `skip` does not read such messages".into(),
            ));
        };
        let key = message.key.as_deref().map(String::from_utf8_lossy);
        let mut added = AddedFields::default();
        if let Some(name) = &self.partition_field {
            added.number(name, u64::from(partition.unsigned_abs()));
        }
        if let Some(name) = &self.offset_field {
            added.number(name, offset);
        }
        if let (Some(name), Some(key)) = (&self.key_field, &key) {
            added.text(name, key);
        }
        self.format.decode(value, &added).map_err(bad)
    }
}

impl<T, F> ReadItems for KafkaItemReader<T, F>
where
    T: Send + 'static,
    F: DecodeMessage<T>,
{
    type Item = T;
    type Position = KafkaPosition;

    fn open(&mut self, checkpoint: Option<KafkaPosition>) -> Result<(), BatchError> {
        self.open(checkpoint)
    }

    fn read(&mut self) -> Result<Option<T>, BatchError> {
        self.read()
    }

    fn position(&mut self) -> Result<KafkaPosition, BatchError> {
        Ok(self.checkpoint())
    }

    fn place(&self) -> Option<String> {
        let next = self.position.next.get(&self.last)?;
        Some(format!("{}, offset {}", place(&self.topic, self.last), next - 1))
    }

    fn close(&mut self) {
        self.close();
    }
}
