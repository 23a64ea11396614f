//! The side of workers: pulls tickets, and reports.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_nats::Subscriber;
use async_nats::jetstream::consumer::AckPolicy;
use async_nats::jetstream::consumer::Consumer;
use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::{AckKind, Message};
use batch_runtime::StepExecutionId;
use batch_runtime::partition::{
    DeclinedFingerprints, DeclinedPartition, DispatchError, PartitionDelivery, PartitionSource,
    PartitionTicket,
};
use futures_util::{FutureExt, StreamExt};
use tokio::time::timeout;

use crate::message::Report;
use crate::outbox::{End, Extension, Outbox, Outgoing};
use crate::permissions::try_pull;
use crate::server::{Server, token};

/// The time that the server may take to answer.
const SILENCE: Duration = Duration::from_secs(5);
/// The wait before a ticket that a worker has declined is delivered again.
const DECLINED: Duration = Duration::from_secs(1);
/// The number of tickets that all workers of a queue may hold. More than they have slots.
const MAX_TICKETS_HELD: i64 = 100_000;

/// A worker's connection to a queue.
pub(crate) struct Source {
    server: Arc<Server>,
    consumer: Consumer<Config>,
    stops: Subscriber,
    declined: DeclinedFingerprints,
    outbox: Arc<Outbox>,
}

impl Source {
    pub(crate) fn connect(server: &Arc<Server>, queue: &str) -> Result<Self, DispatchError> {
        let name = format!("worker_{}", token(queue));
        let config = Config {
            durable_name: Some(name.clone()),
            filter_subject: format!("{}.*", server.subject_of_queue(queue)),
            ack_policy: AckPolicy::Explicit,
            ack_wait: server.address.ack_wait,
            max_ack_pending: MAX_TICKETS_HELD,
            ..Config::default()
        };
        let cannot = |error: async_nats::Error| {
            let cannot = format!("cannot use the consumer `{name}` of the queue on the NATS server");
            DispatchError::new(cannot).caused_by(error)
        };
        let stream = server.stream_of_partitions();
        // It exists if the queue had a worker before, and gets the options of this one.
        let consumer = async {
            let consumer = server.jetstream.create_consumer_on_stream(config, &stream);
            let consumer = consumer.await?;
            try_pull(&server.client, &stream, &name).await;
            Ok(consumer)
        };
        let consumer = server.wait(server.permitted(consumer, &stream));
        let consumer = consumer.map_err(|error| cannot(error.into()))?.map_err(cannot)?;
        let stops = server.subscribe_to_stops();
        let stops = stops
            .map_err(|error| DispatchError::new("cannot subscribe to stop requests").caused_by(error))?;
        Ok(Self {
            server: Arc::clone(server),
            consumer,
            stops,
            declined: DeclinedFingerprints::default(),
            outbox: Arc::new(Outbox::new(server)),
        })
    }

    /// Answers a message that no partition of this worker belongs to.
    fn acknowledge(&self, message: Message, kind: AckKind) {
        self.outbox.send(Outgoing::Acknowledge(Box::new(message), kind));
    }

    /// Pulls the messages that are there, or else waits for one. While the server is away, there are none: requests would wait for it.
    fn pull(&self, count: u32, wait: Duration) -> Result<Vec<Message>, DispatchError> {
        if !self.server.is_connected() {
            thread::sleep(wait);
            return Ok(Vec::new());
        }
        let mut messages = Vec::new();
        let pulled = self.server.wait(async {
            // The server may go away meanwhile, and never answer.
            timeout(wait + SILENCE, self.pull_into(&mut messages, count, wait)).await
        });
        match pulled {
            Ok(Err(error)) if messages.is_empty() => {
                Err(DispatchError::new("cannot take tickets from the NATS server").caused_by(error))
            }
            _ => Ok(messages),
        }
    }

    async fn pull_into(
        &self,
        messages: &mut Vec<Message>,
        count: u32,
        wait: Duration,
    ) -> Result<(), async_nats::Error> {
        let there = self.consumer.fetch().max_messages(count as usize);
        let mut there = there.messages().await?;
        while let Some(message) = there.next().await {
            messages.push(message?);
        }
        if messages.is_empty() {
            let next = self.consumer.batch().max_messages(1).expires(wait);
            let mut next = next.messages().await?;
            while let Some(message) = next.next().await {
                messages.push(message?);
            }
        }
        Ok(())
    }
}

impl PartitionSource for Source {
    fn take(&mut self, count: u32, wait: Duration) -> Result<Vec<Box<dyn PartitionDelivery>>, DispatchError> {
        let begin = Instant::now();
        let mut taken: Vec<Box<dyn PartitionDelivery>> = Vec::new();
        let mut left_to_others = false;
        for message in self.pull(count, wait)? {
            let ticket: PartitionTicket = match serde_json::from_slice(&message.payload) {
                Ok(ticket) => ticket,
                Err(error) => {
                    tracing::error!(%error, "a ticket cannot be read, and is removed");
                    self.acknowledge(message, AckKind::Term);
                    continue;
                }
            };
            if self.declined.contains(&ticket.fingerprint) {
                left_to_others = true;
                self.acknowledge(message, AckKind::Nak(Some(DECLINED)));
                continue;
            }
            taken.push(Box::new(Delivery {
                ticket,
                message,
                server: Arc::clone(&self.server),
                declined: self.declined.clone(),
                outbox: Arc::clone(&self.outbox),
                extension: Extension::default(),
            }));
        }
        if left_to_others && taken.is_empty() {
            thread::sleep(wait.saturating_sub(begin.elapsed()));
        }
        Ok(taken)
    }

    fn stop_requests(&mut self) -> Vec<StepExecutionId> {
        let mut ids = Vec::new();
        while let Some(Some(message)) = self.stops.next().now_or_never() {
            match serde_json::from_slice::<Vec<StepExecutionId>>(&message.payload) {
                Ok(stopped) => ids.extend(stopped),
                Err(error) => tracing::debug!(%error, "a stop request cannot be read"),
            }
        }
        ids
    }
}

/// The last reports and acknowledgements are sent before the process ends.
impl Drop for Source {
    fn drop(&mut self) {
        self.outbox.finish();
    }
}

/// A ticket that this worker has taken.
struct Delivery {
    ticket: PartitionTicket,
    message: Message,
    server: Arc<Server>,
    declined: DeclinedFingerprints,
    outbox: Arc<Outbox>,
    extension: Extension,
}

impl Delivery {
    fn subject(&self) -> String {
        self.server.subject_of_reports(self.ticket.job_execution)
    }

    fn acknowledge(&self, kind: AckKind) {
        let message = Box::new(self.message.clone());
        self.outbox.send(Outgoing::Acknowledge(message, kind));
    }
}

impl PartitionDelivery for Delivery {
    fn ticket(&self) -> &PartitionTicket {
        &self.ticket
    }

    fn extend(&self) -> Result<(), DispatchError> {
        self.outbox.extend(&self.extension, self.message.clone());
        Ok(())
    }

    fn ended(&self) -> Result<(), DispatchError> {
        let end = End {
            subject: self.subject(),
            partition: self.ticket.step_execution,
            ticket: self.message.clone(),
        };
        self.outbox.end(end);
        Ok(())
    }

    fn decline(&self, reason: &DeclinedPartition, wait: Duration) -> Result<(), DispatchError> {
        self.declined.add(&self.ticket.fingerprint, wait);
        self.outbox.send(Outgoing::Report {
            subject: self.subject(),
            report: Report::Declined(self.ticket.step_execution, reason.clone()),
        });
        self.acknowledge(AckKind::Nak(Some(DECLINED)));
        Ok(())
    }

    fn hand_back(&self, wait: Duration) -> Result<(), DispatchError> {
        self.acknowledge(AckKind::Nak(Some(wait).filter(|wait| !wait.is_zero())));
        Ok(())
    }

    fn discard(&self) -> Result<(), DispatchError> {
        self.acknowledge(AckKind::Ack);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
pub(crate) mod tests {
    use super::*;

    /// Returns a message of the server.
    pub(crate) fn message(server: &Server) -> Message {
        Message {
            message: async_nats::Message {
                subject: "batch.part.default.1".into(),
                reply: Some("$JS.ACK.BATCH_PARTITIONS.worker_default.1.1.1.0.0".into()),
                payload: Vec::new().into(),
                headers: None,
                status: None,
                description: None,
                length: 0,
            },
            context: server.jetstream.clone(),
        }
    }

    /// A client of a server that is away keeps 2,048 commands, and then blocks.
    #[test]
    fn an_outage_does_not_block_the_worker() {
        let server = Arc::new(Server::away());
        let stops = server.wait(server.client.subscribe("batch.stop")).unwrap();
        let none = serde_json::json!({ "consumer_seq": 0, "stream_seq": 0 });
        let info = serde_json::json!({
            "stream_name": "BATCH_PARTITIONS", "name": "worker_default", "created": "2026-01-01T00:00:00Z",
            "config": { "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant" },
            "delivered": none, "ack_floor": none, "num_ack_pending": 0, "num_redelivered": 0, "num_waiting": 0, "num_pending": 0,
        });
        let info = serde_json::from_value(info).unwrap();
        let mut source = Source {
            consumer: Consumer::new(Config::default(), info, server.jetstream.clone()),
            stops,
            declined: DeclinedFingerprints::default(),
            outbox: Arc::new(Outbox::new(&server)),
            server,
        };
        let publish = || source.server.client.publish("batch.stop", "[]".into());
        while publish().now_or_never().is_some() {}
        assert_eq!(source.take(1, Duration::ZERO).unwrap().len(), 0);
        assert_eq!(source.stop_requests(), []);
        // It is not drained: that waits for the server.
        std::mem::forget(source);
    }
}
