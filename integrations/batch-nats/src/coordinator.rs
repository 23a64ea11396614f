//! The side of coordinators: publishes tickets, and receives the reports of workers.

use std::collections::{BTreeMap, VecDeque};
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::{Message, Subscriber};
use batch_runtime::partition::{DispatchError, PartitionChannel, PartitionEvent, PartitionTicket};
use batch_runtime::{JobExecutionId, StepExecutionId};
use futures_util::StreamExt;
use tokio::time::{timeout, timeout_at};

use crate::message::Report;
use crate::server::{Server, TIMEOUT};

/// The wait before tickets that the server has not acknowledged are published again.
const PAUSE: Duration = Duration::from_secs(1);

/// The channel of one element.
pub(crate) struct Channel {
    server: Arc<Server>,
    queue: String,
    /// The submitted partitions that have not ended.
    out: BTreeMap<StepExecutionId, PartitionTicket>,
    /// Receives the tickets that the server has not acknowledged.
    failed: (Sender<PartitionTicket>, Receiver<PartitionTicket>),
    publish_again: Instant,
    reports: Subscriber,
    /// The events that have arrived and are to be returned.
    events: VecDeque<PartitionEvent>,
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
        let reports = server.wait(server.client.subscribe(server.subject_of_reports(job)));
        let reports = reports.map_err(|error| {
            DispatchError::new("cannot subscribe to the reports of workers").caused_by(error)
        })?;
        Ok(Self {
            server: Arc::clone(server),
            queue: queue.to_owned(),
            out: BTreeMap::new(),
            failed: mpsc::channel(),
            publish_again: Instant::now(),
            reports,
            events: VecDeque::new(),
        })
    }

    /// Publishes tickets. Those that the server does not acknowledge are published again later.
    fn publish(&self, tickets: Vec<PartitionTicket>) -> Result<(), DispatchError> {
        let message = |ticket: PartitionTicket| {
            let subject = self.server.subject_of_ticket(&self.queue, ticket.step_execution);
            Ok((serde_json::to_vec(&ticket)?, subject, ticket))
        };
        let messages: Result<Vec<_>, serde_json::Error> = tickets.into_iter().map(message).collect();
        let messages =
            messages.map_err(|error| DispatchError::new("cannot write the tickets").caused_by(error))?;
        let (jetstream, failed) = (self.server.jetstream.clone(), self.failed.0.clone());
        self.server.spawn(async move {
            // All are sent before the first acknowledgement is awaited.
            let mut sent = Vec::with_capacity(messages.len());
            for (text, subject, ticket) in messages {
                sent.push((ticket, jetstream.publish(subject, text.into()).await));
            }
            let until = tokio::time::Instant::now() + TIMEOUT;
            let mut lost = 0;
            for (ticket, sent) in sent {
                let acknowledged = match sent {
                    Ok(acknowledgement) => timeout_at(until, acknowledgement.into_future()).await,
                    Err(error) => Ok(Err(error)),
                };
                if !matches!(acknowledged, Ok(Ok(_))) {
                    lost += 1;
                    // The channel is gone once its element has ended.
                    let _ = failed.send(ticket);
                }
            }
            if lost > 0 {
                tracing::warn!(
                    tickets = lost,
                    "the NATS server has not acknowledged tickets; publishing them again"
                );
            }
        });
        Ok(())
    }

    fn publish_failed_again(&mut self) -> Result<(), DispatchError> {
        // In an outage the client would keep each copy, and send all of them at its end.
        if Instant::now() < self.publish_again || !self.server.is_connected() {
            return Ok(());
        }
        self.publish_again = Instant::now() + PAUSE;
        let failed = self.failed.1.try_iter();
        // They may have been submitted again meanwhile, or have ended.
        let failed: Vec<_> = failed
            .filter(|ticket| self.out.get(&ticket.step_execution) == Some(ticket))
            .collect();
        match failed.is_empty() {
            true => Ok(()),
            false => self.publish(failed),
        }
    }

    /// Waits for the next message with reports. Returns `None` at the end of `wait`.
    fn next_report(&mut self, wait: Duration) -> Option<Message> {
        let begin = Instant::now();
        let next = async { timeout(wait, self.reports.next()).await };
        let message = self.server.wait(next).ok()?;
        if message.is_none() {
            // The client has given up. The repository has the ends.
            thread::sleep(wait.saturating_sub(begin.elapsed()));
        }
        message
    }

    /// Adds the events of a message.
    fn arrived(&mut self, message: &Message) {
        match serde_json::from_slice(&message.payload) {
            Ok(Report::Declined(id, reason)) => self.events.push_back(PartitionEvent::Declined(id, reason)),
            Ok(Report::Ended(ids)) => self.events.extend(ids.into_iter().map(PartitionEvent::Ended)),
            Err(error) => tracing::warn!(%error, "a report of a worker cannot be read"),
        }
    }
}

impl PartitionChannel for Channel {
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        for ticket in tickets {
            self.out.insert(ticket.step_execution, ticket.clone());
        }
        self.publish(tickets.to_vec())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(event) = self.events.pop_front() {
                if let PartitionEvent::Ended(id) = &event {
                    self.out.remove(id);
                }
                return Ok(Some(event));
            }
            self.publish_failed_again()?;
            let left = until.saturating_duration_since(Instant::now());
            match self.next_report(left) {
                Some(message) => self.arrived(&message),
                None if Instant::now() >= until => return Ok(None),
                None => {}
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
