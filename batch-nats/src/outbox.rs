//! The messages that a worker sends, in order per partition. Those of different partitions do not wait for each other.
//!
//! During an outage, payloads wait here, and then the partitions that send more of them. What can be lost does not wait: the thread of the
//! worker must not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{AckKind, Context, Message};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::server::Server;

/// The number of messages that wait for the server before partitions with payloads wait, too.
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

/// The last messages of one partition.
#[derive(Default)]
pub(crate) struct Order {
    last: Sending,
    extension: Sending,
}

/// A message that is being sent, or was.
type Sending = Mutex<Option<JoinHandle<()>>>;

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

    /// Sends a message after the others of its partition. If too many messages wait for the server, a payload waits until there are fewer,
    /// and any other message is dropped: the server delivers a ticket again that is not acknowledged, and coordinators find the ends of
    /// partitions in the repository.
    pub(crate) fn send(&self, order: &Order, message: Outgoing) {
        let permits = || Arc::clone(&self.permits);
        let permit = match permits().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if message.is_needed() => match self.server.wait(permits().acquire_owned()) {
                Ok(permit) => permit,
                // The semaphore is never closed.
                Err(_) => return,
            },
            Err(_) => {
                tracing::debug!("too many messages wait for the NATS server; dropping an acknowledgement");
                return;
            }
        };
        let jetstream = self.server.jetstream.clone();
        let mut last = lock(&order.last);
        let before = last.take();
        *last = Some(self.server.spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            message.send(&jetstream).await;
            drop(permit);
        }));
    }

    /// Sends that a partition still runs, unless the last time waits for the server. Does not wait for the reports of the partition.
    pub(crate) fn extend(&self, order: &Order, ticket: Message) {
        let mut extension = lock(&order.extension);
        if extension.as_ref().is_none_or(JoinHandle::is_finished) {
            *extension = Some(self.server.spawn(acknowledge(ticket, AckKind::Progress)));
        }
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
    fn is_needed(&self) -> bool {
        matches!(self, Self::Report { is_needed: true, .. })
    }

    async fn send(self, jetstream: &Context) {
        match self {
            Self::Report {
                subject,
                id,
                text,
                is_needed: true,
            } => report(jetstream, &subject, &id, text).await,
            Self::Report { subject, text, .. } => hint(jetstream, subject, text).await,
            Self::Acknowledge(ticket, kind) => acknowledge(*ticket, kind).await,
        }
    }
}

async fn acknowledge(ticket: Message, kind: AckKind) {
    if let Err(error) = ticket.ack_with(kind).await {
        tracing::debug!(%error, "a ticket is not acknowledged; it will be delivered again");
    }
}

/// Sends a message to the stream without waiting until it is stored. A second one does no harm, so it has no id, which the server would keep.
async fn hint(jetstream: &Context, subject: String, text: Bytes) {
    if let Err(error) = jetstream.client().publish(subject, text).await {
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

fn lock(sending: &Sending) -> MutexGuard<'_, Option<JoinHandle<()>>> {
    sending.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::tests::message;

    /// The thread of a worker acknowledges and extends tickets.
    #[test]
    fn an_outage_stops_payloads_only() {
        let server = Arc::new(Server::away());
        let outbox = Outbox::new(&server);
        let order = Order::default();
        let report = |is_needed| Outgoing::Report {
            subject: "batch.report.1".into(),
            id: "1".into(),
            text: Bytes::new(),
            is_needed,
        };
        for _ in 0..WAITING {
            outbox.send(&order, report(true));
        }
        let ticket = message(&server);
        outbox.send(
            &order,
            Outgoing::Acknowledge(Box::new(ticket.clone()), AckKind::Ack),
        );
        outbox.send(&order, report(false));
        for _ in 0..WAITING {
            outbox.extend(&order, ticket.clone());
        }
        assert_eq!(outbox.permits.available_permits(), 0);
    }
}
