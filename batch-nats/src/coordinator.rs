//! The side of coordinators: publishes tickets, and receives the reports of workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use async_nats::jetstream::message::PublishMessage;
use batch_runtime::partition::{DispatchError, PartitionChannel, PartitionEvent, PartitionTicket};
use batch_runtime::{JobExecutionId, StepExecutionId};

use crate::message::{Piece, Report};
use crate::reports::Reports;
use crate::server::Server;

/// The wait before tickets that the server has not acknowledged are published again.
const PAUSE: Duration = Duration::from_secs(1);

/// The channel of one element.
pub(crate) struct Channel {
    server: Arc<Server>,
    queue: String,
    /// The submitted partitions that have not ended.
    out: BTreeMap<StepExecutionId, PartitionTicket>,
    published: u64,
    /// Receives the tickets that the server has not acknowledged.
    failed: (Sender<PartitionTicket>, Receiver<PartitionTicket>),
    publish_again: Instant,
    reports: Reports,
    /// Reports of which not all pieces have arrived.
    pieces: BTreeMap<String, BTreeMap<usize, String>>,
}

impl Channel {
    pub(crate) fn open(
        server: &Arc<Server>,
        job: JobExecutionId,
        queue: &str,
    ) -> Result<Self, DispatchError> {
        let checked = server.check_queue(queue);
        checked.map_err(|error| {
            DispatchError::new(format!("cannot use the queue `{queue}`")).caused_by(error)
        })?;
        Ok(Self {
            server: Arc::clone(server),
            queue: queue.to_owned(),
            out: BTreeMap::new(),
            published: 0,
            failed: mpsc::channel(),
            publish_again: Instant::now(),
            reports: Reports::open(server, job)?,
            pieces: BTreeMap::new(),
        })
    }

    /// Publishes a ticket. If the server does not acknowledge it, it is published again later.
    fn publish(&mut self, ticket: PartitionTicket) -> Result<(), DispatchError> {
        let text = serde_json::to_vec(&ticket);
        let text = text.map_err(|error| DispatchError::new("cannot write the ticket").caused_by(error))?;
        self.published += 1;
        let (id, attempt, number) = (ticket.step_execution, ticket.attempt, self.published);
        let message = PublishMessage::build()
            .payload(text.into())
            .message_id(format!("{id}-{attempt}-{number}"));
        let subject = self.server.subject_of_ticket(&self.queue, id);
        let (jetstream, failed) = (self.server.jetstream.clone(), self.failed.0.clone());
        self.server.spawn(async move {
            let sent = jetstream.send_publish(subject, message).await;
            let acknowledged = match sent {
                Ok(acknowledgement) => acknowledgement.await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = acknowledged {
                tracing::warn!(partition = %id, %error, "the NATS server has not acknowledged a ticket; publishing it again");
                // The channel is gone once its element has ended.
                let _ = failed.send(ticket);
            }
        });
        Ok(())
    }

    fn publish_failed_again(&mut self) -> Result<(), DispatchError> {
        if Instant::now() < self.publish_again {
            return Ok(());
        }
        self.publish_again = Instant::now() + PAUSE;
        let failed: Vec<PartitionTicket> = self.failed.1.try_iter().collect();
        for ticket in failed {
            // It may have been submitted again meanwhile, or have ended.
            if self.out.get(&ticket.step_execution) == Some(&ticket) {
                self.publish(ticket)?;
            }
        }
        Ok(())
    }

    /// Returns the event of a message, once all its pieces have arrived.
    fn event(&mut self, message: &[u8]) -> Option<PartitionEvent> {
        let piece: Piece = readable(serde_json::from_slice(message))?;
        let pieces = self.pieces.entry(piece.report.clone()).or_default();
        pieces.insert(piece.number, piece.text);
        if pieces.len() < piece.count {
            return None;
        }
        let pieces = self.pieces.remove(&piece.report)?;
        let text: String = pieces.into_values().collect();
        match readable(serde_json::from_str(&text))? {
            Report::Collected(payload) => Some(PartitionEvent::Collected(payload)),
            Report::Declined(id, reason) => Some(PartitionEvent::Declined(id, reason)),
            Report::Ended(id) => {
                self.out.remove(&id);
                Some(PartitionEvent::Ended(id))
            }
        }
    }
}

fn readable<T>(read: Result<T, serde_json::Error>) -> Option<T> {
    if let Err(error) = &read {
        tracing::warn!(%error, "a report of a worker cannot be read");
    }
    read.ok()
}

impl PartitionChannel for Channel {
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        for ticket in tickets {
            self.out.insert(ticket.step_execution, ticket.clone());
            self.publish(ticket.clone())?;
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError> {
        let until = Instant::now() + wait;
        loop {
            self.publish_failed_again()?;
            let left = until.saturating_duration_since(Instant::now());
            let message = self.reports.next(left);
            if let Some(event) = message.and_then(|message| self.event(&message)) {
                return Ok(Some(event));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    fn stop(&mut self) {
        let ids: Vec<StepExecutionId> = self.out.keys().copied().collect();
        let Ok(text) = serde_json::to_vec(&ids) else {
            return;
        };
        let (client, subject) = (self.server.client.clone(), self.server.subject_of_stops());
        self.server.spawn(async move {
            if let Err(error) = client.publish(subject, text.into()).await {
                tracing::debug!(%error, "workers learn of the stop from the repository");
            }
        });
    }
}
