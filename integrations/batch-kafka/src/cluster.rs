//! The brokers of a cluster, as the clients of one topic see them.

use std::collections::BTreeMap;
use std::time::Duration;

use batch_items::queue::{Attempts, Fault, Waiting};
use batch_runtime::xml::suggest::did_you_mean;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{ListOffsetsRequest, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::address::{Access, Address};
use super::codes::fault_of;
use super::connection::Connection;

/// Reads only messages of transactions that have committed.
pub(super) const READ_COMMITTED: i8 = 1;
/// How long it takes until all brokers know a new topic.
const KNOWN_EVERYWHERE: Duration = Duration::from_secs(5);
/// The broker id of a client.
pub(super) const NO_REPLICA: i32 = -1;

/// Which offset of a partition is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OffsetOf {
    /// The first message that the broker has.
    Earliest,
    /// The end of the messages that can be read: no transaction before it is open.
    Latest,
}

/// The connections to a cluster, and the leaders of a topic's partitions.
pub(super) struct Cluster {
    access: Access,
    topic: TopicName,
    /// The topic's id, if the brokers have ids of topics. A topic that is created again gets another one.
    pub(super) topic_id: Option<String>,
    brokers: BTreeMap<i32, Address>,
    leaders: BTreeMap<i32, i32>,
    connections: BTreeMap<i32, Connection>,
}

impl Cluster {
    /// Connects to a cluster, and finds the topic.
    pub(super) fn connect(access: Access, topic: &str, waiting: &Waiting) -> Result<Self, Fault> {
        let mut cluster = Self {
            access,
            topic: topic_name(topic),
            topic_id: None,
            brokers: BTreeMap::new(),
            leaders: BTreeMap::new(),
            connections: BTreeMap::new(),
        };
        let mut attempts = Attempts::new(KNOWN_EVERYWHERE);
        loop {
            let (found, metadata) = cluster.ask_metadata(waiting)?;
            if found {
                cluster.update(metadata)?;
                return Ok(cluster);
            }
            let (is_listed, fault) = cluster.unknown_topic(waiting);
            match attempts.next_pause().filter(|_| is_listed) {
                Some(pause) if !waiting.pause(pause) => {}
                Some(_) => return Err(Fault::Stopped),
                None => return Err(fault),
            }
        }
    }

    pub(super) fn topic(&self) -> &TopicName {
        &self.topic
    }

    /// Returns the numbers of the topic's partitions.
    pub(super) fn partitions(&self) -> impl Iterator<Item = i32> {
        self.leaders.keys().copied()
    }

    /// Returns what to call a partition in messages.
    pub(super) fn place(&self, partition: i32) -> String {
        place(&self.topic, partition)
    }

    /// Makes attempts at a call until it succeeds, or fails in a way that would repeat itself.
    pub(super) fn attempt<T>(
        &mut self,
        waiting: &Waiting,
        mut call: impl FnMut(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut attempts = Attempts::new(self.access.timeout);
        loop {
            match call(self) {
                Err(Fault::Transient(problem)) => attempts.wait(&problem, waiting)?,
                result => return result,
            }
            // The partitions may have other leaders.
            match self.refresh(waiting) {
                Ok(()) | Err(Fault::Transient(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Connects again, and finds the leaders.
    fn refresh(&mut self, waiting: &Waiting) -> Result<(), Fault> {
        self.connections.clear();
        let (found, metadata) = self.ask_metadata(waiting)?;
        match found {
            true => self.update(metadata),
            // A broker that has just started may not know it yet.
            false => Err(Fault::Transient(format!(
                "there is no topic `{}`",
                self.topic.as_str()
            ))),
        }
    }

    /// Asks any broker for the topic. Returns whether it exists.
    fn ask_metadata(&mut self, waiting: &Waiting) -> Result<(bool, MetadataResponse), Fault> {
        let topic = MetadataRequestTopic::default().with_name(Some(self.topic.clone()));
        let metadata = self.ask_any(Some(vec![topic]), waiting)?;
        let code = metadata.topics.first().map_or(0, |topic| topic.error_code);
        if code == ResponseError::UnknownTopicOrPartition.code() {
            return Ok((false, metadata));
        }
        match fault_of(code, &format!("cannot find the topic `{}`", self.topic.as_str())) {
            Some(fault) => Err(fault),
            None => Ok((!metadata.topics.is_empty(), metadata)),
        }
    }

    fn ask_any(
        &mut self,
        topics: Option<Vec<MetadataRequestTopic>>,
        waiting: &Waiting,
    ) -> Result<MetadataResponse, Fault> {
        let request = MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(false);
        let mut servers = self.access.servers.clone();
        servers.extend(
            self.brokers
                .values()
                .filter(|broker| !self.access.servers.contains(broker))
                .cloned(),
        );
        let mut problems = Vec::new();
        for server in servers {
            let connection = Connection::open(&server, &self.access, waiting);
            match connection.and_then(|mut connection| connection.call(&request, waiting)) {
                Ok(metadata) => return Ok(metadata),
                Err(Fault::Transient(problem)) => problems.push(problem),
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Transient(problems.join("; ")))
    }

    fn update(&mut self, metadata: MetadataResponse) -> Result<(), Fault> {
        let Some(topic) = metadata.topics.into_iter().next() else {
            return Ok(());
        };
        let id = (!topic.topic_id.is_nil()).then(|| topic.topic_id.to_string());
        if self.topic_id.is_some() && id != self.topic_id {
            return Err(Fault::Permanent(recreated(&self.topic)));
        }
        self.topic_id = id;
        let brokers = metadata.brokers.into_iter().filter_map(|broker| {
            let port = u16::try_from(broker.port).ok()?;
            let host = broker.host.to_string();
            Some((broker.node_id.0, Address { host, port }))
        });
        self.brokers = brokers.collect();
        let partitions = topic.partitions.into_iter();
        self.leaders = partitions
            .map(|partition| (partition.partition_index, partition.leader_id.0))
            .collect();
        Ok(())
    }

    /// Explains that the topic does not exist. Returns also whether it is listed: then it was created a moment ago.
    fn unknown_topic(&mut self, waiting: &Waiting) -> (bool, Fault) {
        let topic = self.topic.as_str().to_owned();
        let others = self
            .ask_any(None, waiting)
            .map(|metadata| metadata.topics)
            .unwrap_or_default();
        let names = others.iter().filter(|other| !other.is_internal);
        let names: Vec<_> = names
            .filter_map(|other| Some(other.name.as_ref()?.as_str()))
            .collect();
        let fault = Fault::Permanent(format!(
            "there is no topic `{topic}`{}; create it, or permit this user to describe it",
            did_you_mean(&topic, names.iter().copied())
        ));
        (names.contains(&topic.as_str()), fault)
    }

    /// Returns the leader of each partition.
    pub(super) fn by_leader(&self, partitions: &[i32]) -> Result<BTreeMap<i32, Vec<i32>>, Fault> {
        let mut leaders: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for partition in partitions {
            match self.leaders.get(partition) {
                Some(leader) if self.brokers.contains_key(leader) => {
                    leaders.entry(*leader).or_default().push(*partition);
                }
                _ => {
                    let place = self.place(*partition);
                    return Err(Fault::Transient(format!("{place} has no leader at the moment")));
                }
            }
        }
        Ok(leaders)
    }

    /// Returns the connection to a broker.
    pub(super) fn connection(&mut self, broker: i32, waiting: &Waiting) -> Result<&mut Connection, Fault> {
        if !self.connections.contains_key(&broker) {
            let address = self.brokers.get(&broker);
            let address = address.ok_or_else(|| Fault::Transient(format!("broker {broker} is unknown")))?;
            let connection = Connection::open(address, &self.access, waiting)?;
            self.connections.insert(broker, connection);
        }
        let connection = self.connections.get_mut(&broker);
        connection.ok_or_else(|| Fault::Transient(format!("broker {broker} is unknown")))
    }

    /// Returns a broker that any request may go to.
    pub(super) fn any_broker(&self) -> Result<i32, Fault> {
        let broker = self.brokers.keys().next().copied();
        broker.ok_or_else(|| Fault::Transient("the cluster has no brokers".to_owned()))
    }

    /// Closes the connections. Their requests may still be answered.
    pub(super) fn disconnect(&mut self) {
        self.connections.clear();
    }

    /// Returns an offset of each partition.
    pub(super) fn offsets(
        &mut self,
        of: OffsetOf,
        partitions: &[i32],
        waiting: &Waiting,
    ) -> Result<BTreeMap<i32, i64>, Fault> {
        self.attempt(waiting, |cluster| {
            let mut offsets = BTreeMap::new();
            for (leader, partitions) in cluster.by_leader(partitions)? {
                cluster.ask_offsets(of, leader, &partitions, &mut offsets, waiting)?;
            }
            Ok(offsets)
        })
    }

    fn ask_offsets(
        &mut self,
        of: OffsetOf,
        leader: i32,
        partitions: &[i32],
        offsets: &mut BTreeMap<i32, i64>,
        waiting: &Waiting,
    ) -> Result<(), Fault> {
        let timestamp = match of {
            OffsetOf::Earliest => -2,
            OffsetOf::Latest => -1,
        };
        let partitions = partitions.iter().map(|partition| {
            ListOffsetsPartition::default()
                .with_partition_index(*partition)
                .with_timestamp(timestamp)
        });
        let topic = ListOffsetsTopic::default()
            .with_name(self.topic.clone())
            .with_partitions(partitions.collect());
        let request = ListOffsetsRequest::default()
            .with_replica_id(NO_REPLICA.into())
            .with_isolation_level(READ_COMMITTED)
            .with_topics(vec![topic]);
        let response = self.connection(leader, waiting)?.call(&request, waiting)?;
        for partition in response.topics.into_iter().flat_map(|topic| topic.partitions) {
            let number = partition.partition_index;
            let what = format!("cannot find the offsets of {}", self.place(number));
            if let Some(fault) = fault_of(partition.error_code, &what) {
                return Err(fault);
            }
            offsets.insert(number, partition.offset);
        }
        Ok(())
    }
}

pub(super) fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

/// Returns what to call a partition in messages.
pub(super) fn place(topic: &str, partition: i32) -> String {
    format!("partition {partition} of topic `{topic}`")
}

/// Explains that a position in a topic is not one in the topic of that name.
pub(super) fn recreated(topic: &str) -> String {
    format!(
        "the topic `{topic}` has been deleted and created again, so the offsets of the checkpoint are those of other messages; \
         launch a new instance of the job to read it from its beginning"
    )
}
