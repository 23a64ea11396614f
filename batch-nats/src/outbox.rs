//! What a worker sends. The messages of one partition go out in their order; those of different partitions do not wait for each other, and
//! no partition waits for the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{AckKind, Context, Message};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::server::Server;

/// The number of messages that wait for the server before partitions wait, too.
const WAITING: u32 = 1_000;
/// The wait after a report that the server has not acknowledged, and the most tries.
const PAUSE: Duration = Duration::from_millis(500);
const TRIES: u32 = 240;
/// The time for the last messages at the end of a worker.
const LAST_MESSAGES: Duration = Duration::from_secs(10);

pub(crate) struct Outbox {
    server: Arc<Server>,
    permits: Arc<Semaphore>,
}

/// The order of the messages of one partition: the last one that was sent.
#[derive(Default)]
pub(crate) struct Order(Mutex<Option<JoinHandle<()>>>);

/// A message.
pub(crate) enum Outgoing {
    Report {
        subject: String,
        id: String,
        text: Bytes,
        /// False for a hint, which the repository repeats: it is not sent again if the server does not store it.
        is_needed: bool,
    },
    Acknowledge(Box<Message>, AckKind),
}

impl Outbox {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            permits: Arc::new(Semaphore::new(WAITING as usize)),
        }
    }

    /// Sends a message after the others of its partition. Waits only if too many messages wait for the server.
    pub(crate) fn send(&self, order: &Order, message: Outgoing) {
        let permits = || Arc::clone(&self.permits);
        let permit = match permits().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => match self.server.wait(permits().acquire_owned()) {
                Ok(permit) => permit,
                // Nobody closes it.
                Err(_) => return,
            },
        };
        let jetstream = self.server.jetstream.clone();
        let mut last = order.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.take();
        *last = Some(self.server.spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            message.send(&jetstream).await;
            drop(permit);
        }));
    }

    /// Waits until all messages are sent.
    pub(crate) fn finish(&self) {
        let sent = self.server.wait(async {
            let sent = timeout(LAST_MESSAGES, self.permits.acquire_many(WAITING)).await;
            let flushed = timeout(LAST_MESSAGES, self.server.client.flush()).await;
            sent.is_ok() && matches!(flushed, Ok(Ok(())))
        });
        if !sent {
            tracing::warn!(
                "the last reports to coordinators are not sent; they find the ends in the repository"
            );
        }
    }
}

impl Outgoing {
    async fn send(self, jetstream: &Context) {
        match self {
            Self::Report {
                subject,
                id,
                text,
                is_needed: true,
            } => report(jetstream, &subject, &id, text).await,
            Self::Report {
                subject, id, text, ..
            } => hint(jetstream, subject, &id, text).await,
            Self::Acknowledge(message, kind) => {
                if let Err(error) = message.ack_with(kind).await {
                    tracing::debug!(%error, "a ticket is not acknowledged; it will be delivered again");
                }
            }
        }
    }
}

/// Sends a message to the stream without waiting until it is stored.
async fn hint(jetstream: &Context, subject: String, id: &str, text: Bytes) {
    let mut headers = HeaderMap::new();
    headers.insert(header::NATS_MESSAGE_ID, id);
    let sent = jetstream
        .client()
        .publish_with_headers(subject, headers, text)
        .await;
    if let Err(error) = sent {
        tracing::debug!(%error, "a coordinator finds the end of a partition in the repository");
    }
}

async fn report(jetstream: &Context, subject: &str, id: &str, text: Bytes) {
    for _ in 0..TRIES {
        let message = PublishMessage::build().payload(text.clone()).message_id(id);
        let sent = jetstream.send_publish(subject.to_owned(), message).await;
        let acknowledged = match sent {
            Ok(acknowledgement) => acknowledgement.await.map(drop),
            Err(error) => Err(error),
        };
        match acknowledged {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "a report is not acknowledged; sending it again"),
        }
        sleep(PAUSE).await;
    }
    tracing::warn!(
        report = id,
        "the NATS server has not accepted a report for a long time; it is lost"
    );
}
