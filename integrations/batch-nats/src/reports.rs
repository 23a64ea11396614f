//! The reports of workers, as a coordinator receives them: a subscription, which is renewed after an interruption.

use std::future::Future;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use batch_runtime::JobExecutionId;
use batch_runtime::partition::DispatchError;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::permissions::try_pull;
use crate::server::Server;

/// The wait before the next attempt to subscribe.
const PAUSE: Duration = Duration::from_secs(1);

/// The reports of a job execution since they were opened.
pub(crate) struct Reports {
    server: Arc<Server>,
    job: JobExecutionId,
    subscription: Subscription,
    /// The number of the first message in the stream that has not been received.
    next: u64,
    /// Whether the current interruption is logged.
    is_logged: bool,
}

enum Subscription {
    Open(Box<Ordered>),
    /// On another thread, because it waits for the server.
    Opening(JoinHandle<Result<Ordered, async_nats::Error>>),
    /// Until the next attempt.
    Closed(Instant),
}

impl Reports {
    /// Subscribes to the reports from now on. Those before belong to other elements.
    pub(crate) fn open(server: &Arc<Server>, job: JobExecutionId) -> Result<Self, DispatchError> {
        let stream = server.stream_of_reports();
        let next = server.wait(server.permitted(server.jetstream.get_stream(&stream), &stream));
        let next = next.map_err(cannot)?.map_err(cannot)?;
        let mut reports = Self {
            server: Arc::clone(server),
            job,
            subscription: Subscription::Closed(Instant::now()),
            next: next.cached_info().state.last_sequence + 1,
            is_logged: false,
        };
        let open = server.wait(server.permitted(reports.subscribe(), &stream));
        reports.subscription = Subscription::Open(Box::new(open.map_err(cannot)?.map_err(cannot)?));
        Ok(reports)
    }

    /// Returns a future that subscribes to the reports that have not been received.
    fn subscribe(&self) -> impl Future<Output = Result<Ordered, async_nats::Error>> + Send + use<> {
        let config = OrderedConfig {
            filter_subject: self.server.subject_of_reports(self.job),
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: self.next,
            },
            ..OrderedConfig::default()
        };
        // Not the server: the last owner of its threads must not be one of them.
        let (client, jetstream) = (self.server.client.clone(), self.server.jetstream.clone());
        let stream = self.server.stream_of_reports();
        async move {
            let consumer = jetstream.create_consumer_on_stream(config, &stream).await;
            let consumer = consumer?;
            try_pull(&client, &stream, &consumer.cached_info().name).await;
            Ok(consumer.messages().await?)
        }
    }

    /// Waits for the next message. Returns `None` at the end of `wait`, or earlier after an interruption.
    pub(crate) fn next(&mut self, wait: Duration) -> Option<Bytes> {
        match &mut self.subscription {
            Subscription::Open(reports) => {
                let next = async { timeout(wait, reports.next()).await };
                let message = match self.server.wait(next).ok()? {
                    Some(Ok(message)) => message,
                    Some(Err(error)) => {
                        tracing::warn!(%error, "the reports of workers are interrupted; subscribing again");
                        self.subscription = Subscription::Closed(Instant::now());
                        return None;
                    }
                    None => {
                        self.subscription = Subscription::Closed(Instant::now());
                        return None;
                    }
                };
                if let Ok(info) = message.info() {
                    self.next = info.stream_sequence + 1;
                }
                Some(message.message.payload)
            }
            Subscription::Opening(task) => {
                let opened = async { timeout(wait, task).await };
                let opened = self.server.wait(opened).ok()?;
                self.opened(opened.unwrap_or_else(|error| Err(error.into())));
                None
            }
            Subscription::Closed(again) => {
                let pause = again.saturating_duration_since(Instant::now());
                thread::sleep(pause.min(wait));
                if pause <= wait {
                    self.subscription = Subscription::Opening(self.server.spawn(self.subscribe()));
                }
                None
            }
        }
    }

    fn opened(&mut self, opened: Result<Ordered, async_nats::Error>) {
        match opened {
            Ok(reports) => {
                self.is_logged = false;
                self.subscription = Subscription::Open(Box::new(reports));
            }
            Err(error) => {
                if !self.is_logged {
                    tracing::warn!("cannot subscribe to the reports of workers: {error}; trying again");
                }
                self.is_logged = true;
                self.subscription = Subscription::Closed(Instant::now() + PAUSE);
            }
        }
    }
}

fn cannot(cause: impl Into<async_nats::Error>) -> DispatchError {
    DispatchError::new("cannot subscribe to the reports of workers").caused_by(cause)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// Subscribing to a server that is away takes seconds, and another thread.
    #[test]
    fn nothing_is_awaited_without_time_for_it() {
        let mut reports = Reports {
            server: Arc::new(Server::away()),
            job: JobExecutionId(1),
            subscription: Subscription::Closed(Instant::now()),
            next: 1,
            is_logged: false,
        };
        for _ in 0..3 {
            assert_eq!(reports.next(Duration::ZERO), None);
            assert!(matches!(reports.subscription, Subscription::Opening(_)));
        }
    }
}
