//! The messages that a worker sends. During an outage some wait here, and the others are dropped: the repository has what they say.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::{AckKind, Context, Message};
use batch_runtime::StepExecutionId;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::message::Report;
use crate::server::Server;

/// The number of messages that may wait for the server.
const WAITING: u32 = 1_000;
/// The least time between two messages with ends of partitions.
const ENDS_TOGETHER: Duration = Duration::from_millis(5);
/// The most ends in one message: servers limit its size, to 1 MiB by default.
const ENDS_IN_A_MESSAGE: usize = 10_000;
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

/// The last message that a partition still runs.
pub(crate) type Extension = Mutex<Option<JoinHandle<()>>>;

/// A message.
pub(crate) enum Outgoing {
    Report { subject: String, report: Report },
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

    /// Sends a message. If too many messages wait for the server, it is dropped, because the thread of a worker must not wait: the server
    /// delivers a ticket again that is not acknowledged, and coordinators find the ends of partitions in the repository.
    pub(crate) fn send(&self, message: Outgoing) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return tracing::debug!("too many messages wait for the NATS server; dropping one");
        };
        let jetstream = self.server.jetstream.clone();
        self.server.spawn(async move {
            message.send(&jetstream).await;
            drop(permit);
        });
    }

    /// Sends the end of a partition: at once, or together with others, if many partitions end.
    pub(crate) fn end(&self, end: End) {
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

    /// Sends that a partition still runs, unless the last time waits for the server.
    pub(crate) fn extend(&self, extension: &Extension, ticket: Message) {
        let mut extension = lock(extension);
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
    async fn send(self, jetstream: &Context) {
        match self {
            Self::Report { subject, report } => hint(jetstream, subject, &report).await,
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
        for partitions in partitions.chunks(ENDS_IN_A_MESSAGE) {
            hint(jetstream, subject.to_owned(), &Report::Ended(partitions.to_vec())).await;
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

/// Sends a report without waiting until the server has it.
async fn hint(jetstream: &Context, subject: String, report: &Report) {
    let sent = match serde_json::to_vec(report) {
        Ok(text) => jetstream.client().publish(subject, text.into()).await,
        Err(error) => return tracing::error!(%error, "cannot write the report"),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a report is not sent; the coordinator finds ends in the repository");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::tests::message;

    /// The thread of a worker reports, acknowledges and extends tickets.
    #[test]
    fn an_outage_stops_nothing() {
        let server = Arc::new(Server::away());
        let outbox = Outbox::new(&server);
        let ticket = message(&server);
        let extension = Extension::default();
        for _ in 0..=WAITING {
            outbox.send(Outgoing::Acknowledge(Box::new(ticket.clone()), AckKind::Ack));
            outbox.send(Outgoing::Report {
                subject: "batch.report.1".into(),
                report: Report::Ended(vec![StepExecutionId(1)]),
            });
            outbox.extend(&extension, ticket.clone());
        }
        let end = End {
            subject: "batch.report.1".into(),
            partition: StepExecutionId(1),
            ticket,
        };
        outbox.end(end);
        assert!(lock(&outbox.ends).waiting.len() <= 1);
    }
}
