//! The messages of a stream, from a sequence on, whatever happens to connections and consumers.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::{self, Batch};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{ConsumerErrorKind, RetentionPolicy, Stream};
use async_nats::jetstream::{ErrorCode, Message};
use batch_items::queue::{Fault, Waiting};
use batch_runtime::xml::suggest::did_you_mean;
use bytes::Bytes;
use futures_util::StreamExt;

use super::connection::{Server, TIMEOUT};

/// The most messages that are requested at once.
const BATCH: usize = 500;
/// How long a request for messages waits at the server.
const REQUEST: Duration = Duration::from_secs(2);
/// When the server removes a consumer that is not used.
const INACTIVE: Duration = Duration::from_secs(60);

/// A message of a stream.
pub(super) struct Received {
    pub(super) sequence: u64,
    pub(super) subject: String,
    pub(super) payload: Bytes,
    /// The number of messages after it.
    pub(super) pending: u64,
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamState {
    /// When it was created, in nanoseconds since 1970.
    pub(super) created: i64,
    /// The sequence of the first message that it has.
    pub(super) first: u64,
    pub(super) last: u64,
    /// True if the stream keeps only the last messages of each subject, so that removing others is no loss.
    pub(super) is_compacted: bool,
}

impl StreamState {
    /// Checks that the stream belongs to a position: the time of its creation, and the sequence of the next message.
    pub(super) fn check(&self, created: i64, next: u64) -> Result<(), String> {
        if created != self.created {
            return Err("the stream has been deleted and created again, so the sequence of the checkpoint is that of another message; \
                 launch a new instance of the job to read it from its beginning"
                .to_owned());
        }
        match next > self.last + 1 {
            true => Err(format!(
                "the stream ends at sequence {}, and the next message would be {next}: the server has lost messages that were read; launch \
                 a new instance of the job to read what is there",
                self.last
            )),
            false => Ok(()),
        }
    }
}

/// A consumer that lives as long as this process reads. It is not durable, and acknowledges nothing.
pub(super) struct Source {
    name: String,
    subject: Option<String>,
    stream: Stream,
    /// When the stream was created.
    created: i64,
    active: Option<Active>,
}

struct Active {
    consumer: Consumer<pull::Config>,
    batch: Option<Batch>,
    /// The number of messages that have arrived from it. A gap shows that one was lost on its way.
    arrived: u64,
    /// The number of the connection that it was created on.
    connection: u64,
}

impl Source {
    /// Finds a stream.
    pub(super) fn open(
        server: &Server,
        name: &str,
        subject: Option<&str>,
        waiting: &Waiting,
    ) -> Result<(Self, StreamState), Fault> {
        let (stream, state) = find(server, name, waiting)?;
        let retention = stream.cached_info().config.retention;
        if retention != RetentionPolicy::Limits {
            return Err(Fault::Permanent(format!(
                "the stream removes messages when they are acknowledged (retention `{retention:?}`), so a restart would not find those of \
                 its checkpoint; read a stream with the retention `limits`, for example one that has this stream as its source"
            )));
        }
        let source = Self {
            name: name.to_owned(),
            subject: subject.map(str::to_owned),
            stream,
            created: state.created,
            active: None,
        };
        Ok((source, state))
    }

    /// Creates the consumer, before the first message is read. The error is a wrong subject, or a missing permission.
    pub(super) fn start(&mut self, server: &Server, from: u64, waiting: &Waiting) -> Result<(), Fault> {
        self.active = Some(self.consumer(server, from, waiting)?);
        Ok(())
    }

    /// Asks the server for the state of the stream.
    pub(super) fn state(&self, server: &Server, waiting: &Waiting) -> Result<StreamState, Fault> {
        server
            .attempt(waiting, || find(server, &self.name, waiting))
            .map(|(_, state)| state)
    }

    /// Returns the next message from a sequence on; `None` if none arrives in the time.
    pub(super) fn next(
        &mut self,
        server: &Server,
        from: u64,
        wait: Duration,
        waiting: &Waiting,
    ) -> Result<Option<Received>, Fault> {
        server.attempt(waiting, || {
            let delivered = self.deliver(server, from, wait, waiting);
            if delivered.is_err() {
                self.active = None;
            }
            delivered
        })
    }

    fn deliver(
        &mut self,
        server: &Server,
        from: u64,
        wait: Duration,
        waiting: &Waiting,
    ) -> Result<Option<Received>, Fault> {
        let lost = || Fault::Transient("the connection to the server is lost".to_owned());
        if !server.is_connected() {
            return Err(lost());
        }
        let mut active = match self.active.take() {
            // Requests of an earlier connection are lost, and a server that has crashed may not know the consumer.
            Some(active) if active.connection != server.connection() => return Err(lost()),
            Some(active) => active,
            None => self.consumer(server, from, waiting)?,
        };
        let mut batch = match active.batch.take() {
            Some(batch) => batch,
            None => {
                let request = active
                    .consumer
                    .batch()
                    .max_messages(BATCH)
                    .expires(REQUEST)
                    .messages();
                let batch = server.poll(request, TIMEOUT).ok_or_else(lost)?;
                batch.map_err(|error| Fault::Transient(format!("cannot request messages: {error}")))?
            }
        };
        let received = match server.poll(batch.next(), wait) {
            None if !server.is_connected() => return Err(lost()),
            None => {
                active.batch = Some(batch);
                None
            }
            // The request has expired, or all its messages have arrived.
            Some(None) => {
                active.state(server)?;
                None
            }
            Some(Some(Err(error))) => {
                return Err(Fault::Transient(format!("cannot receive messages: {error}")));
            }
            Some(Some(Ok(message))) => {
                active.batch = Some(batch);
                active.arrived += 1;
                Some(received(&message, active.arrived, from)?)
            }
        };
        self.active = Some(active);
        Ok(received)
    }

    /// Creates a consumer that delivers messages from a sequence on. The stream may be another one than before.
    fn consumer(&self, server: &Server, from: u64, waiting: &Waiting) -> Result<Active, Fault> {
        let connection = server.connection();
        let (_, state) = find(server, &self.name, waiting)?;
        state.check(self.created, from).map_err(Fault::Permanent)?;
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            filter_subject: self.subject.clone().unwrap_or_default(),
            inactive_threshold: INACTIVE,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let created = server.wait(self.stream.create_consumer(config));
        let consumer = created.map_err(|error| {
            let text = format!("cannot create a consumer: {error}");
            match error.kind() {
                ConsumerErrorKind::JetStream(error) if (400..500).contains(&error.code()) => {
                    Fault::Permanent(text)
                }
                _ => Fault::Transient(format!(
                    "{text}; permit this user to publish to `$JS.API.>` and to subscribe to `_INBOX.>`"
                )),
            }
        })?;
        Ok(Active {
            consumer,
            batch: None,
            arrived: 0,
            connection,
        })
    }

    /// Returns whether all messages that the stream has from a sequence on have arrived.
    pub(super) fn is_drained(
        &mut self,
        server: &Server,
        from: u64,
        waiting: &Waiting,
    ) -> Result<bool, Fault> {
        server.attempt(waiting, || {
            let mut active = match self.active.take() {
                Some(active) => active,
                None => self.consumer(server, from, waiting)?,
            };
            let pending = active.state(server);
            // Without the answer, or if a message is under way or lost, another consumer delivers it.
            if pending.is_ok() {
                self.active = Some(active);
            }
            pending.map(|pending| pending == 0)
        })
    }
}

impl Active {
    /// Asks the server for the number of messages that it has not delivered. An error if it has delivered others than have arrived.
    fn state(&mut self, server: &Server) -> Result<u64, Fault> {
        let info = server
            .poll(self.consumer.get_info(), TIMEOUT)
            .and_then(Result::ok);
        let info = info
            .ok_or_else(|| Fault::Transient("the server does not know the consumer any more".to_owned()))?;
        match info.delivered.consumer_sequence == self.arrived {
            true => Ok(info.num_pending),
            false => Err(Fault::Transient(
                "messages of the server have not arrived".to_owned(),
            )),
        }
    }
}

/// Reads what a message says about itself. An error if one before it was lost.
fn received(message: &Message, number: u64, from: u64) -> Result<Received, Fault> {
    let info = message.info();
    let info = info.map_err(|error| Fault::Permanent(format!("a message has no sequence: {error}")))?;
    if info.consumer_sequence != number || info.stream_sequence < from {
        return Err(Fault::Transient("a message was lost on its way".to_owned()));
    }
    Ok(Received {
        sequence: info.stream_sequence,
        subject: message.subject.to_string(),
        payload: message.payload.clone(),
        pending: info.pending,
    })
}

/// Asks the server for a stream.
fn find(server: &Server, name: &str, waiting: &Waiting) -> Result<(Stream, StreamState), Fault> {
    let found = server.wait_or_stop(server.jetstream.get_stream(name), waiting)?;
    let stream = found.map_err(|error| match error.kind() {
        GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
            Fault::Permanent(format!("there is no stream `{name}`{}; create it", nearest(server, name)))
        }
        GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED => Fault::Permanent(
            "the server runs without JetStream; start it with `-js`".to_owned(),
        ),
        GetStreamErrorKind::EmptyName | GetStreamErrorKind::InvalidStreamName => {
            Fault::Permanent(format!("`{name}` is not the name of a stream"))
        }
        _ => Fault::Transient(format!(
            "cannot ask for the stream `{name}`: {error}; start the server with JetStream (`-js`), and permit this user to publish to \
             `$JS.API.>` and to subscribe to `_INBOX.>`"
        )),
    })?;
    let info = stream.cached_info();
    let state = StreamState {
        created: i64::try_from(info.created.unix_timestamp_nanos()).unwrap_or_default(),
        // 0 in a stream that never had a message.
        first: info.state.first_sequence.max(1),
        last: info.state.last_sequence,
        is_compacted: info.config.max_messages_per_subject > 0,
    };
    Ok((stream, state))
}

/// Suggests a stream with nearly this name.
fn nearest(server: &Server, name: &str) -> String {
    let names = server
        .jetstream
        .stream_names()
        .take(1_000)
        .filter_map(async |name| name.ok());
    let names: Vec<String> = server.poll(names.collect(), TIMEOUT).unwrap_or_default();
    did_you_mean(name, names.iter().map(String::as_str))
}
