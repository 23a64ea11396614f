//! The messages that a worker sends, in order per partition. Different partitions do not wait for each other.
//!
//! During an outage, payloads wait here, and then the partitions that send more of them. What can be lost does not wait: the thread of the
//! worker must not.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{AckKind, Context, Message};
use batch_runtime::StepExecutionId;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::message::{Report, pieces};
use crate::server::Server;

/// The number of messages that wait for the server before partitions with payloads wait, too.
const WAITING: u32 = 1_000;
/// The least time between two messages with ends of partitions.
const ENDS_TOGETHER: Duration = Duration::from_millis(5);
/// The wait after a report that the server has not acknowledged, and the most tries.
const PAUSE: Duration = Duration::from_millis(500);
const TRIES: u32 = 240;
/// The time for the last messages at the end of a worker.
const LAST_MESSAGES: Duration = Duration::from_secs(10);

pub(crate) struct Outbox {
    server: Arc<Server>,
    permits: Arc<Semaphore>,
    ends: Arc<Mutex<Ends>>,
}

/// The end of a partition: a report, and the acknowledgement of the ticket.
pub(crate) struct End {
    pub(crate) subject: String,
    pub(crate) partition: StepExecutionId,
    pub(crate) ticket: Message,
}

/// The ends that are sent together.
#[derive(Default)]
struct Ends {
    waiting: Vec<End>,
    sent: Option<Instant>,
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
    Ends(Vec<End>),
}

impl Outbox {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            permits: Arc::new(Semaphore::new(WAITING as usize)),
            ends: Arc::default(),
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

    /// Sends the end of a partition: at once, or together with others, if many partitions end. Each message costs the server a write.
    pub(crate) fn end(&self, order: &Order, end: End) {
        let has_payloads = lock(&order.last).as_ref().is_some_and(|last| !last.is_finished());
        if has_payloads {
            return self.send(order, Outgoing::Ends(vec![end]));
        }
        let mut ends = lock(&self.ends);
        if ends.waiting.is_empty() {
            let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
                return tracing::debug!("too many messages wait for the NATS server; dropping an end");
            };
            let pause = ends.sent.map_or(Duration::ZERO, |sent| {
                ENDS_TOGETHER.saturating_sub(sent.elapsed())
            });
            let (ends, jetstream) = (Arc::clone(&self.ends), self.server.jetstream.clone());
            self.server.spawn(async move {
                sleep(pause).await;
                let together = {
                    let mut ends = lock(&ends);
                    ends.sent = Some(Instant::now());
                    mem::take(&mut ends.waiting)
                };
                Outgoing::Ends(together).send(&jetstream).await;
                drop(permit);
            });
        }
        ends.waiting.push(end);
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
            Self::Ends(ends) => send_ends(jetstream, ends).await,
        }
    }
}

/// Sends a report for each job execution, and then the acknowledgements.
async fn send_ends(jetstream: &Context, ends: Vec<End>) {
    let mut partitions: BTreeMap<&str, Vec<StepExecutionId>> = BTreeMap::new();
    for end in &ends {
        partitions.entry(&end.subject).or_default().push(end.partition);
    }
    for (subject, partitions) in partitions {
        let id = format!("{}-ended", partitions[0]);
        match pieces(&id, &Report::Ended(partitions)) {
            Ok(pieces) => {
                for text in pieces {
                    hint(jetstream, subject.to_owned(), text).await;
                }
            }
            Err(error) => tracing::error!(%error, "cannot write the report"),
        }
    }
    for end in ends {
        acknowledge(end.ticket, AckKind::Ack).await;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let end = End {
            subject: "batch.report.1".into(),
            partition: StepExecutionId(1),
            ticket,
        };
        outbox.end(&Order::default(), end);
        assert_eq!(lock(&outbox.ends).waiting.len(), 0);
        assert_eq!(outbox.permits.available_permits(), 0);
    }
}
