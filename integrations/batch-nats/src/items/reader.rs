//! The reader of a stream.

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

use super::connection::{NatsConnection, Server, close};
use super::consumer::{Received, Source, StreamState};

/// Reads the messages of a stream of NATS JetStream as items of type `T`. Requires the feature `items`, which is on by default.
///
/// It has the properties of [`NatsConnection`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `stream` | required | the stream; its retention must be `limits` |
/// | `subject` | all | the subject of the messages that are read, also with wildcards: `orders.*.eu` |
/// | `start` | `earliest` | where to start without a checkpoint: `earliest`, or `latest` for messages that arrive from now on |
/// | `start.query` | none | a query on the database of the repository with the column `sequence`: where to start without a checkpoint, before `start` |
/// | `until` | `end` | the end of the run, as of `KafkaItemReader`: `end`, `idle 30s`, `items 1000`, or several of them, separated by commas |
/// | `if.removed` | `fail` | `continue`: messages that the stream has removed before they were read are not missed, but logged |
/// | `subject.field`, `sequence.field` | none | fields that items get in addition |
///
/// **The checkpoint is the sequence of the next message.** The reader has no durable consumer and acknowledges nothing: what is committed
/// with the checkpoint, such as the rows of a [`TableItemWriter`](batch_items::TableItemWriter), has each message exactly once. The end of
/// `until` = `end` is part of the checkpoint, so a restart ends at the same message. A restart fails before it reads if the stream
/// has been created again, or no longer has the sequence. Streams that keep some messages of each subject remove the others as
/// intended, so that is not an error there. With a `subject`, messages that are removed while the step reads are not noticed.
///
/// A message that is not an item is a [`RecordError`](batch_items::RecordError) with stream and sequence; a job may skip it.
///
/// The format `F` is [`JsonMessages`], [`TextMessages`](batch_items::queue::TextMessages), [`BinaryMessages`](batch_items::queue::BinaryMessages), or one
/// of the program.
///
/// ```
/// use batch_nats::NatsItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Payment {
///     number: String,
///     cents: i64,
/// }
///
/// #[item_reader("PaymentReader")]
/// type PaymentReader = NatsItemReader<Payment>;
/// ```
///
/// ```xml
/// <chunk reader="PaymentReader" writer="PaymentWriter" commit-interval="1000">
///   <properties>
///     <property name="servers" value="nats://nats-1:4222" target="reader"/>
///     <property name="stream" value="PAYMENTS" target="reader"/>
///   </properties>
/// </chunk>
/// ```
// Spec: QUEUE-01 to QUEUE-06
#[derive(BatchArtifact)]
pub struct NatsItemReader<T, F = JsonMessages> {
    #[batch_artifact]
    connection: NatsConnection,
    #[batch_property(name = "stream")]
    stream: String,
    #[batch_property(name = "subject")]
    subject: Option<String>,
    #[batch_property(name = "start", value = "earliest")]
    start: Start,
    #[batch_property(name = "start.query")]
    start_query: Option<Query>,
    #[batch_property(name = "until", value = "end")]
    until: Until,
    #[batch_property(name = "if.removed", value = "fail")]
    if_removed: IfRemoved,
    #[batch_property(name = "subject.field")]
    subject_field: Option<String>,
    #[batch_property(name = "sequence.field")]
    sequence_field: Option<String>,
    #[batch_artifact]
    format: F,
    #[batch_artifact]
    waiting: Waiting,
    /// `None` before the reader is open, and if a stop was requested meanwhile.
    server: Option<Server>,
    source: Option<Source>,
    position: NatsPosition,
    /// When no message was there, since the last message.
    idle_since: Option<Instant>,
    item: PhantomData<fn() -> T>,
}

/// The checkpoint of a [`NatsItemReader`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NatsPosition {
    /// The stream.
    pub stream: String,
    /// When it was created, in nanoseconds since 1970. 0 if the reader was stopped before it knew the stream.
    pub created: i64,
    /// The sequence of the next message, or a smaller one.
    pub next: u64,
    /// The sequence where the run ends, if it ends at the messages that were there when it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// The number of items that were read.
    pub items: u64,
}

impl NatsPosition {
    fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }
}

#[item_reader(rewindable = true)]
impl<T, F> NatsItemReader<T, F>
where
    T: Send + 'static,
    F: DecodeMessage<T>,
{
    /// Connects to the server, and positions at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<NatsPosition>) -> Result<(), BatchError> {
        self.close();
        self.position = checkpoint.unwrap_or_default();
        self.idle_since = None;
        let stream = self.connection.dataset(&self.stream);
        self.waiting.report(DatasetRole::Input, stream);
        self.connect()
            .or_else(|error| error.unless_stopped(|text| self.fail(text)))
    }

    /// Reads the next message.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<T>, BatchError> {
        match self.next_message() {
            Ok(Some(message)) => {
                let item = self.item(&message)?;
                self.position.items += 1;
                Ok(Some(item))
            }
            Ok(None) | Err(Fault::Stopped) => Ok(None),
            Err(fault) => Err(self.fail(fault.into_text()).into()),
        }
    }

    /// Returns the sequence of the next message.
    #[get_checkpoint_info]
    pub fn checkpoint(&self) -> NatsPosition {
        self.position.clone()
    }

    /// Returns the number of sequences, if the run ends at the messages that were there and there is no `subject`.
    #[get_item_count]
    pub fn item_count(&self) -> Option<u64> {
        let end = self.position.end.filter(|_| self.subject.is_none());
        let left = end.map(|end| end.saturating_sub(self.position.next));
        self.until.count(self.position.items, left)
    }

    /// Closes the connection.
    #[close]
    pub fn close(&mut self) {
        self.source = None;
        close(self.server.take());
    }

    fn fail(&self, cause: impl Into<String>) -> ResourceError {
        let action = format!("read the stream `{}` at {}", self.stream, self.connection.shown());
        ResourceError::new(action, cause.into())
    }

    /// Connects, and completes the position.
    fn connect(&mut self) -> Result<(), OpenError> {
        let server = self.connection.connect()?;
        let found = Source::open(&server, &self.stream, self.subject.as_deref(), &self.waiting);
        self.server = Some(server);
        let (mut source, state) = found?;
        if self.position.created == 0 {
            self.start(state)?;
        }
        if !self.until.end {
            self.position.end = None;
        } else if self.position.end.is_none() {
            self.position.end = Some(state.last + 1);
        }
        self.check(state)?;
        if let Some(server) = &self.server {
            source.start(server, self.position.next, &self.waiting)?;
        }
        self.source = Some(source);
        Ok(())
    }

    /// Sets the position of a first start.
    fn start(&mut self, state: StreamState) -> Result<(), OpenError> {
        let next = match self.start {
            Start::Earliest => state.first,
            Start::Latest => state.last + 1,
        };
        self.position = NatsPosition {
            stream: self.stream.clone(),
            created: state.created,
            next: self.queried()?.unwrap_or(next),
            end: None,
            items: 0,
        };
        Ok(())
    }

    /// Returns the result of the query for the start.
    fn queried(&self) -> Result<Option<u64>, OpenError> {
        let Some(query) = &self.start_query else {
            return Ok(None);
        };
        let rows = load_records(&self.waiting, query);
        let rows = rows.map_err(|error| OpenError::Other(error.into()))?;
        let Some(row) = rows.first() else { return Ok(None) };
        match row.get("sequence") {
            Some(value) if value.is_null() => Ok(None),
            value => {
                let sequence = value
                    .and_then(|value| value.as_i64())
                    .and_then(|value| u64::try_from(value).ok());
                let problem =
                    || format!("`start.query` has to return the number `sequence`, and has returned `{row}`");
                let sequence = sequence.ok_or_else(|| Fault::Permanent(problem()))?;
                Ok(Some(sequence))
            }
        }
    }

    /// Checks that the stream belongs to the checkpoint, and has the messages from the position on.
    fn check(&mut self, state: StreamState) -> Result<(), Fault> {
        let NatsPosition {
            stream,
            created,
            next,
            ..
        } = &self.position;
        if *stream != self.stream {
            return Err(Fault::Permanent(format!(
                "the checkpoint is that of the stream `{stream}`; restart the job with this stream, or launch a new instance"
            )));
        }
        state.check(*created, *next).map_err(Fault::Permanent)?;
        self.check_removed(state)
    }

    fn check_removed(&mut self, state: StreamState) -> Result<(), Fault> {
        let next = self.position.next;
        if state.first <= next || state.is_compacted || self.position.is_done() {
            return Ok(());
        }
        let missing = format!(
            "the stream no longer has sequence {next}, and begins at {}",
            state.first
        );
        self.if_removed
            .check(&missing, state.first - next, "raise the limits of the stream")?;
        self.position.next = state.first;
        Ok(())
    }

    /// Returns the next message, and advances past it; `None` at the end of the run.
    fn next_message(&mut self) -> Result<Option<Received>, Fault> {
        loop {
            let is_idle = self.idle_since.is_some_and(|since| self.until.is_idle(since));
            let is_over = self.position.is_done() || self.until.is_enough(self.position.items);
            if is_over || self.waiting.is_stopping() {
                return Ok(None);
            }
            let (Some(server), Some(source)) = (&self.server, &mut self.source) else {
                return Err(Fault::Stopped);
            };
            // A message may have been lost on its way.
            if is_idle && source.is_drained(server, self.position.next, &self.waiting)? {
                return Ok(None);
            }
            let wait = match self.idle_since {
                Some(since) if !is_idle => self.until.wait(since, POLL),
                _ => POLL,
            };
            let next = self.position.next;
            match source.next(server, next, wait, &self.waiting)? {
                Some(message) if self.position.end.is_some_and(|end| message.sequence >= end) => {
                    // Nothing is left before the end: the messages were removed, or have other subjects.
                    self.check_gap(message.sequence)?;
                    self.position.next = self.position.end.unwrap_or(next);
                }
                Some(message) => {
                    self.check_gap(message.sequence)?;
                    self.idle_since = None;
                    self.position.next = match self.position.end {
                        Some(end) if message.pending == 0 => end,
                        _ => message.sequence + 1,
                    };
                    return Ok(Some(message));
                }
                None => {
                    self.idle_since.get_or_insert_with(Instant::now);
                    if let Some(end) = self.position.end
                        && source.is_drained(server, next, &self.waiting)?
                    {
                        self.position.next = end;
                    }
                }
            }
        }
    }

    /// Checks whether the messages between the position and the next message were removed by a limit of the stream.
    fn check_gap(&mut self, sequence: u64) -> Result<(), Fault> {
        if sequence == self.position.next || self.subject.is_some() {
            return Ok(());
        }
        let (Some(server), Some(source)) = (&self.server, &self.source) else {
            return Ok(());
        };
        let state = source.state(server, &self.waiting)?;
        self.check_removed(state)
    }

    fn item(&mut self, message: &Received) -> Result<T, ReadError> {
        let mut added = AddedFields::default();
        if let Some(name) = &self.subject_field {
            added.text(name, &message.subject);
        }
        if let Some(name) = &self.sequence_field {
            added.number(name, message.sequence);
        }
        self.format.decode(&message.payload, &added).map_err(|cause| {
            let stream = format!("stream `{}`", self.stream);
            RecordError::of_message(stream, "sequence", message.sequence, cause, &message.payload).into()
        })
    }
}

impl<T, F> ReadItems for NatsItemReader<T, F>
where
    T: Send + 'static,
    F: DecodeMessage<T>,
{
    type Item = T;
    type Position = NatsPosition;

    fn open(&mut self, checkpoint: Option<NatsPosition>) -> Result<(), BatchError> {
        self.open(checkpoint)
    }

    fn read(&mut self) -> Result<Option<T>, BatchError> {
        self.read()
    }

    fn position(&mut self) -> Result<NatsPosition, BatchError> {
        Ok(self.checkpoint())
    }

    fn place(&self) -> Option<String> {
        Some(format!(
            "sequence {} of stream `{}`",
            self.position.next.checked_sub(1)?,
            self.stream
        ))
    }

    fn close(&mut self) {
        self.close();
    }
}
