//! Queues on brokers that all tests share; no test stops a shared broker.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use async_nats::ConnectOptions;
use async_nats::jetstream::{self, Context, stream};
use batch_test_servers::{KafkaServer, NatsServer};

use super::stage::Properties;
use super::{Item, items};

/// The kinds of brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kafka,
    Nats,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Kafka, Self::Nats];
}

pub(crate) fn kafka() -> &'static KafkaServer {
    static SERVER: OnceLock<KafkaServer> = OnceLock::new();
    SERVER.get_or_init(KafkaServer::start)
}

pub(crate) fn nats() -> &'static NatsServer {
    static SERVER: OnceLock<NatsServer> = OnceLock::new();
    SERVER.get_or_init(start_nats)
}

pub(crate) fn start_nats() -> NatsServer {
    NatsServer::start("max_payload: 200000\n")
}

/// A new topic or stream, and the address of its broker.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) address: String,
}

impl Queue {
    /// Creates a queue on the shared broker.
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Kafka => Self::on_kafka(kafka(), 3),
            Kind::Nats => Self::on_nats(nats(), stream::Config::default()),
        }
    }

    fn name() -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        format!("queue{}", NUMBER.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn on_kafka(server: &KafkaServer, partitions: u32) -> Self {
        let name = Self::name();
        server.client(&["create", &name, &partitions.to_string()]);
        Self {
            kind: Kind::Kafka,
            name,
            address: server.address(),
        }
    }

    /// The subjects of a stream begin with its name.
    pub(crate) fn on_nats(server: &NatsServer, config: stream::Config) -> Self {
        let queue = Self {
            kind: Kind::Nats,
            name: Self::name(),
            address: server.url().to_owned(),
        };
        queue.create_stream(config);
        queue
    }

    pub(crate) fn create_stream(&self, config: stream::Config) {
        let config = stream::Config {
            name: self.name.clone(),
            subjects: vec![format!("{}.>", self.name)],
            ..config
        };
        on_nats(&self.address, async |jetstream| {
            jetstream.create_stream(config).await.unwrap();
        });
    }

    /// Returns the reader of the queue.
    pub(crate) fn reader(&self, further: &[(&'static str, &str)]) -> (&'static str, Properties) {
        let (artifact, name) = match self.kind {
            Kind::Kafka => ("FromKafka", "topic"),
            Kind::Nats => ("FromNats", "stream"),
        };
        (artifact, self.properties(name, self.name.clone(), further))
    }

    /// Returns the writer of the queue.
    pub(crate) fn writer(&self, further: &[(&'static str, &str)]) -> (&'static str, Properties) {
        match self.kind {
            Kind::Kafka => ("ToKafka", self.properties("topic", self.name.clone(), further)),
            Kind::Nats => (
                "ToNats",
                self.properties("subject", format!("{}.new", self.name), further),
            ),
        }
    }

    fn properties(&self, name: &'static str, value: String, further: &[(&'static str, &str)]) -> Properties {
        let mut properties = vec![("servers", self.address.clone()), (name, value)];
        for (name, value) in further {
            properties.retain(|(other, _)| other != name);
            properties.push((name, (*value).to_owned()));
        }
        properties
    }

    /// Puts items into the queue. In Kafka their numbers are the keys.
    pub(crate) fn send(&self, ids: impl IntoIterator<Item = i64>) {
        let items = items(ids);
        let messages = items
            .iter()
            .map(|item| (item.id.to_string(), serde_json::to_string(item).unwrap()));
        self.send_texts(messages.collect());
    }

    /// Puts texts into the queue.
    pub(crate) fn send_texts(&self, messages: Vec<(String, String)>) {
        match self.kind {
            Kind::Kafka => {
                let messages: Vec<String> = messages
                    .iter()
                    .map(|(key, text)| format!("{key}|{text}"))
                    .collect();
                let mut words = vec!["send", &self.name, "none"];
                words.extend(messages.iter().map(String::as_str));
                kafka().client(&words);
            }
            Kind::Nats => self.publish(
                messages
                    .into_iter()
                    .map(|(_, text)| ("old".to_owned(), text))
                    .collect(),
            ),
        }
    }

    /// Publishes texts to subjects of the stream.
    pub(crate) fn publish(&self, messages: Vec<(String, String)>) {
        on_nats(&self.address, async |jetstream| {
            for (subject, text) in messages {
                let subject = format!("{}.{subject}", self.name);
                jetstream
                    .publish(subject, text.into())
                    .await
                    .unwrap()
                    .await
                    .unwrap();
            }
        });
    }

    /// Returns the items in the queue, by their numbers.
    pub(crate) fn stored(&self) -> Vec<Item> {
        let mut items: Vec<Item> = match self.kind {
            Kind::Kafka => return self.stored_on(kafka()),
            Kind::Nats => on_nats(&self.address, async |jetstream| {
                let stream = jetstream.get_stream(&self.name).await.unwrap();
                let mut items = Vec::new();
                for sequence in 1..=stream.cached_info().state.last_sequence {
                    let message = stream.get_raw_message(sequence).await.unwrap();
                    items.push(serde_json::from_slice(&message.payload).unwrap());
                }
                items
            }),
        };
        items.sort();
        items
    }

    /// Returns the items in the queue on this broker of Kafka, by their numbers.
    pub(crate) fn stored_on(&self, server: &KafkaServer) -> Vec<Item> {
        let lines = server.client(&["read", &self.name]);
        let values = lines.iter().map(|line| line.split('\t').nth(2).unwrap());
        let mut items: Vec<Item> = values.map(|value| serde_json::from_str(value).unwrap()).collect();
        items.sort();
        items
    }
}

/// Runs a function with a client of NATS.
pub(crate) fn on_nats<T>(address: &str, act: impl AsyncFnOnce(Context) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (user, server) = address
            .rsplit_once('@')
            .map_or((None, address), |(user, host)| (Some(user), host));
        let options = match user.and_then(|user| user.strip_prefix("nats://")?.split_once(':')) {
            Some((user, password)) => ConnectOptions::with_user_and_password(user.into(), password.into()),
            None => ConnectOptions::new(),
        };
        let client = options.connect(server).await.unwrap();
        act(jetstream::new(client)).await
    })
}
