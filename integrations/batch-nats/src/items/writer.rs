//! The writer of subjects.

use std::collections::BTreeSet;
use std::error::Error;
use std::marker::PhantomData;
use std::str::FromStr;

use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use batch_items::compose::WriteItems;
use batch_items::queue::{EncodeMessage, Fault, Headers, JsonMessages, Template, Waiting, WriteError};
use batch_items::{EncodeError, ResourceError};
use batch_runtime::BatchArtifact;
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::connection::{NatsConnection, Server, TIMEOUT, close};

/// The most messages that are sent before their acknowledgements are awaited.
const WINDOW: usize = 500;
/// The header that identifies a message for a stream.
const MESSAGE_ID: &str = "Nats-Msg-Id";

/// Writes each item as a message to streams of NATS JetStream, at least once. Requires the feature `items`, which is on by default.
///
/// It has the properties of [`NatsConnection`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `subject` | required | the subject, a text with fields of the item such as `orders.{region}`; a stream must have it |
/// | `stream` | none | the stream that has to store the messages; any other is an error |
/// | `headers` | none | headers, separated by `;`: `source=billing; region={region}` |
/// | `message.id` | none | `position`, or a text with fields of the item such as `{number}`: the id by which the stream recognizes a message that is written again |
///
/// **A list of items is written when the server has acknowledged every message**, so before its chunk commits. If the process dies
/// between the two, or the chunk is rolled back, a restart writes the messages of the chunk again. With a `message.id` the stream does not
/// store those that it has stored within its duplicate window, by default the last two minutes; after a later restart they are
/// there twice.
///
/// The id should name the item alone, such as an order number and a version: a stream ignores another message with the same
/// id. `position` is for items without such a field: the id consists of the job, its instance, the step, the number of the message in the
/// step, and a hash of its subject and content. A restart gives a message the same id if the items come again in the same order; if
/// they do not, it gets another one, so nothing is lost. Two repositories that run jobs with the same names and numbers, also new ones in
/// memory, must not use `position` on the same stream within the duplicate window.
///
/// Items that are not messages are an [`EncodeError`](batch_items::EncodeError) before any message of their list is sent; so is a message that is larger than
/// the server accepts. When messages are sent again after a lost connection, their order in the stream may change within the list.
///
/// ```
/// use batch_nats::NatsItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Payment {
///     number: String,
///     cents: i64,
/// }
///
/// #[item_writer("PaymentWriter")]
/// type PaymentWriter = NatsItemWriter<Payment>;
/// ```
///
/// ```xml
/// <chunk reader="PaymentReader" writer="PaymentWriter" commit-interval="1000">
///   <properties>
///     <property name="servers" value="nats://nats-1:4222" target="writer"/>
///     <property name="subject" value="payments.new" target="writer"/>
///     <property name="message.id" value="{number}" target="writer"/>
///   </properties>
/// </chunk>
/// ```
// Spec: QUEUE-07 to QUEUE-10
#[derive(BatchArtifact)]
pub struct NatsItemWriter<T, F = JsonMessages> {
    #[batch_artifact]
    connection: NatsConnection,
    #[batch_property(name = "subject")]
    subject: Template,
    #[batch_property(name = "stream")]
    stream: Option<String>,
    #[batch_property(name = "headers", value = "")]
    headers: Headers,
    #[batch_property(name = "message.id")]
    message_id: Option<MessageId>,
    #[batch_artifact]
    format: F,
    #[batch_artifact]
    waiting: Waiting,
    server: Option<Server>,
    /// The number of messages written in the step.
    written: u64,
    item: PhantomData<fn(T)>,
}

/// The property `message.id`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MessageId {
    Position,
    Template(Template),
}

impl FromStr for MessageId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "position" {
            return Ok(Self::Position);
        }
        let template: Template = text.parse()?;
        match template.has_fields() {
            true => Ok(Self::Template(template)),
            // A stream would store the first message only.
            false => {
                Err("expected `position`, or a text with fields of the item such as `{number}`".to_owned())
            }
        }
    }
}

/// A message to write.
struct Outgoing {
    subject: String,
    payload: Bytes,
    headers: HeaderMap,
}

#[item_writer]
impl<T, F> NatsItemWriter<T, F>
where
    T: Serialize + Send + 'static,
    F: EncodeMessage<T>,
{
    /// Connects to the server, at the number of messages of the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<u64>) -> Result<(), ResourceError> {
        self.close();
        self.written = checkpoint.unwrap_or_default();
        let target = self.stream.clone();
        let target = target.unwrap_or_else(|| self.subject.pattern("*"));
        let target = self.connection.dataset(&target);
        self.waiting.report(DatasetRole::Output, target);
        let connected = self.connect();
        self.server = Some(connected.map_err(|fault| self.fail(fault))?);
        Ok(())
    }

    /// Writes items, and waits until they are stored.
    #[write_items]
    pub fn write(&mut self, items: &[T]) -> Result<(), BatchError> {
        self.write_each(items.iter())
    }

    /// Returns the number of messages that were written.
    #[get_checkpoint_info]
    pub fn checkpoint(&self) -> u64 {
        self.written
    }

    /// Closes the connection.
    #[close]
    pub fn close(&mut self) {
        close(self.server.take());
    }

    fn connect(&self) -> Result<Server, Fault> {
        if let Some(name) = self
            .headers
            .names()
            .find(|name| name.to_lowercase().starts_with("nats-"))
        {
            return Err(Fault::Permanent(format!(
                "the header `{name}` is one of the server's own; set `message.id` for `{MESSAGE_ID}`"
            )));
        }
        let server = self.connection.connect()?;
        let checked = self.check(&server);
        match checked {
            Ok(()) => Ok(server),
            Err(fault) => {
                close(Some(server));
                Err(fault)
            }
        }
    }

    /// Checks that there is a stream for the messages.
    fn check(&self, server: &Server) -> Result<(), Fault> {
        if let Some(stream) = &self.stream {
            let found = server.wait_or_stop(server.jetstream.get_stream(stream), &self.waiting)?;
            let missing = |error| Fault::Permanent(format!("cannot find the stream `{stream}`: {error}"));
            return found.map(|_| ()).map_err(missing);
        }
        if self.subject.has_fields() {
            return Ok(());
        }
        let subject = self
            .subject
            .text(&serde_json::Value::Null)
            .ok()
            .flatten()
            .unwrap_or_default();
        let found = server.wait_or_stop(
            server.jetstream.stream_by_subject(subject.as_str()),
            &self.waiting,
        )?;
        found.map(|_| ()).map_err(|error| {
            Fault::Permanent(format!(
                "no stream has the subject `{subject}` ({error}); create one"
            ))
        })
    }

    fn place(&self) -> String {
        match &self.stream {
            Some(stream) => format!("the stream `{stream}` at {}", self.connection.shown()),
            None => format!("streams at {}", self.connection.shown()),
        }
    }

    fn fail(&self, fault: Fault) -> ResourceError {
        ResourceError::new(format!("write to {}", self.place()), fault.into_text())
    }

    fn write_each<'a>(&mut self, items: impl Iterator<Item = &'a T>) -> Result<(), BatchError> {
        let mut messages = Vec::new();
        for (index, item) in items.enumerate() {
            let message = self.message(item, self.written + index as u64);
            let failed = |cause: String| EncodeError::of_chunk(self.place(), index, cause);
            messages.push(message.map_err(failed)?);
        }
        match self.send(&messages) {
            Ok(()) => {
                self.written += messages.len() as u64;
                Ok(())
            }
            Err(WriteError::Fault(fault)) => Err(self.fail(fault).into()),
            Err(WriteError::TooLarge(index)) => {
                let bytes = messages[index].payload.len();
                let cause = format!(
                    "the message of {bytes} bytes is larger than the server accepts; raise its `max_payload`, or `max_msg_size` of the stream"
                );
                Err(EncodeError::of_chunk(self.place(), index, cause))
            }
        }
    }

    fn message(&mut self, item: &T, position: u64) -> Result<Outgoing, String> {
        let mut payload = Vec::new();
        let encoded = self.format.encode(item, &mut payload);
        encoded.map_err(|error| error.to_string())?;
        let has_fields = self.subject.has_fields()
            || self.headers.has_fields()
            || matches!(self.message_id, Some(MessageId::Template(_)));
        let fields = match has_fields {
            true => serde_json::to_value(item).map_err(|error| error.to_string())?,
            false => serde_json::Value::Null,
        };
        let subject = self
            .subject
            .text(&fields)
            .map_err(|problem| format!("`subject`: {problem}"))?;
        let subject = subject.filter(|subject| is_subject(subject)).ok_or_else(|| {
            "`subject`: a field is null or empty, or has a blank, `*` or `>`, so that it is not a valid subject"
                .to_owned()
        })?;
        let mut headers = HeaderMap::new();
        for (name, value) in self
            .headers
            .values(&fields)
            .map_err(|problem| format!("`headers`: {problem}"))?
        {
            let header = HeaderName::from_str(name).map_err(|error| format!("header `{name}`: {error}"))?;
            headers.insert(header, header_value(name, &value)?);
        }
        if let Some(id) = self.id(&subject, &payload, &fields, position)? {
            headers.insert(MESSAGE_ID, header_value("message.id", &id)?);
        }
        if let Some(stream) = &self.stream {
            headers.insert("Nats-Expected-Stream", header_value("stream", stream)?);
        }
        Ok(Outgoing {
            subject,
            payload: payload.into(),
            headers,
        })
    }

    /// Returns the id of a message.
    fn id(
        &self,
        subject: &str,
        payload: &[u8],
        fields: &serde_json::Value,
        position: u64,
    ) -> Result<Option<String>, String> {
        match &self.message_id {
            None => Ok(None),
            Some(MessageId::Position) => {
                let hash = Sha256::new()
                    .chain_update(subject)
                    .chain_update([0])
                    .chain_update(payload)
                    .finalize();
                let hash: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
                let Waiting { job, step } = &self.waiting;
                let (id, instance, step) = (job.id(), job.instance_id(), step.execution_name());
                Ok(Some(format!("{id}:{instance}:{step}:{position}:{hash}")))
            }
            Some(MessageId::Template(template)) => {
                let id = template
                    .text(fields)
                    .map_err(|problem| format!("`message.id`: {problem}"))?;
                let id = id.filter(|id| !id.is_empty());
                id.map(Some)
                    .ok_or_else(|| "`message.id`: a field is null, so the message has no id".to_owned())
            }
        }
    }

    /// Sends messages until all are acknowledged.
    fn send(&self, messages: &[Outgoing]) -> Result<(), WriteError> {
        let Some(server) = &self.server else {
            return Err(Fault::Permanent("the writer is not open".to_owned()).into());
        };
        for (number, window) in messages.chunks(WINDOW).enumerate() {
            let mut missing: BTreeSet<usize> = (0..window.len()).collect();
            let mut too_large = None;
            let result = server.attempt(&self.waiting, || {
                if !server.is_connected() {
                    return Err(Fault::Transient(
                        "the connection to the server is lost".to_owned(),
                    ));
                }
                let sent = server.poll(publish(&server.jetstream, window, &mut missing), 2 * TIMEOUT);
                match sent.unwrap_or_else(|| {
                    Err(Unsent::Transient(
                        "the server does not acknowledge messages".to_owned(),
                    ))
                }) {
                    Ok(()) => Ok(()),
                    Err(Unsent::Transient(problem)) => Err(Fault::Transient(problem)),
                    // As long as the server starts, no stream answers.
                    Err(Unsent::NoStream(problem)) if self.written > 0 || number > 0 => {
                        Err(Fault::Transient(problem))
                    }
                    Err(Unsent::NoStream(problem) | Unsent::Permanent(problem)) => {
                        Err(Fault::Permanent(problem))
                    }
                    Err(Unsent::TooLarge(index)) => {
                        too_large = Some(number * WINDOW + index);
                        Ok(())
                    }
                }
            });
            result?;
            if let Some(index) = too_large {
                return Err(WriteError::TooLarge(index));
            }
        }
        Ok(())
    }
}

/// Why messages are not acknowledged.
enum Unsent {
    Transient(String),
    NoStream(String),
    Permanent(String),
    TooLarge(usize),
}

/// Sends messages, and removes those that are acknowledged from `missing`. Returns the worst error.
async fn publish(
    jetstream: &jetstream::Context,
    messages: &[Outgoing],
    missing: &mut BTreeSet<usize>,
) -> Result<(), Unsent> {
    let mut sent: Vec<(usize, PublishAckFuture)> = Vec::new();
    let mut problem = None;
    for index in missing.iter().copied() {
        let message = &messages[index];
        let publish = PublishMessage::build()
            .payload(message.payload.clone())
            .headers(message.headers.clone());
        match jetstream.send_publish(message.subject.clone(), publish).await {
            Ok(acknowledged) => sent.push((index, acknowledged)),
            Err(error) => {
                problem = Some(unsent(&error, index, &message.subject));
                break;
            }
        }
    }
    for (index, acknowledged) in sent {
        match acknowledged.await {
            Ok(_) => {
                missing.remove(&index);
            }
            Err(error) => {
                let found = unsent(&error, index, &messages[index].subject);
                let is_worse = matches!(problem, None | Some(Unsent::Transient(_)));
                problem = if is_worse { Some(found) } else { problem };
            }
        }
    }
    problem.map_or(Ok(()), Err)
}

fn unsent(error: &PublishError, index: usize, subject: &str) -> Unsent {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<jetstream::Error>());
    let code = source.map(jetstream::Error::error_code);
    match error.kind() {
        PublishErrorKind::MaxPayloadExceeded => Unsent::TooLarge(index),
        _ if code == Some(ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM) => Unsent::TooLarge(index),
        PublishErrorKind::StreamNotFound => {
            Unsent::NoStream(format!("no stream has the subject `{subject}`; create one"))
        }
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => {
            Unsent::Transient(format!("the server does not acknowledge messages: {error}"))
        }
        _ if source.is_some_and(|source| source.code() >= 500) => Unsent::Transient(error.to_string()),
        _ => Unsent::Permanent(error.to_string()),
    }
}

/// Returns whether messages can be published to a subject.
fn is_subject(subject: &str) -> bool {
    let is_token = |token: &str| {
        !token.is_empty()
            && !token.contains(|character: char| character.is_whitespace() || "*>".contains(character))
    };
    subject.split('.').all(is_token)
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(value).map_err(|error| format!("header `{name}`: {error}"))
}

impl<T, F> WriteItems<T> for NatsItemWriter<T, F>
where
    T: Serialize + Send + 'static,
    F: EncodeMessage<T>,
{
    type Position = u64;

    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
        Ok(self.open(checkpoint)?)
    }

    fn write(&mut self, items: &[&T], _: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_each(items.iter().copied())
    }

    fn position(&mut self) -> Result<u64, BatchError> {
        Ok(self.written)
    }

    fn close(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_item() {
        assert_eq!("position".parse(), Ok(MessageId::Position));
        assert!("{number}".parse::<MessageId>().is_ok());
        let constant = "payment".parse::<MessageId>().unwrap_err();
        assert!(constant.contains("fields of the item"), "{constant}");
    }

    #[test]
    fn subjects_are_tokens() {
        for (subject, valid) in [
            ("orders.eu", true),
            ("orders", true),
            ("", false),
            ("orders.", false),
            ("orders..eu", false),
            ("orders.*", false),
            (">", false),
            ("orders. eu", false),
        ] {
            assert_eq!(is_subject(subject), valid, "{subject}");
        }
    }
}
