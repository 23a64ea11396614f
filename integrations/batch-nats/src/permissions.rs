//! Checks that the server permits what coordinators and workers do, before anything starts.

use std::future::Future;

use async_nats::{Client, HeaderMap, Request, RequestErrorKind, Subscriber, header};
use futures_util::StreamExt;
use tokio::time::timeout;

use crate::error::NatsError;
use crate::server::{Server, TIMEOUT};
use crate::violations::parts;

impl Server {
    /// Returns the result of an operation, or the permission that this user lacks for it. `subject` is a part of the subjects that the
    /// operation uses.
    pub(crate) async fn permitted<T>(
        &self,
        operation: impl Future<Output = T>,
        subject: &str,
    ) -> Result<T, NatsError> {
        let result = self
            .violations
            .or_result(operation, |problem| problem.contains(subject))
            .await;
        result.map_err(|violation| {
            let (action, subject) = parts(&violation);
            NatsError::Permission {
                action,
                subject: subject.to_owned(),
                server: self.address.server.clone(),
                prefix: self.address.prefix.clone(),
            }
        })
    }

    /// Checks that this user may publish to a subject, by a message that the stream rejects, because it expects another stream.
    pub(crate) fn check_publish(&self, subject: String, stream: String) -> Result<(), NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_EXPECTED_STREAM, "none");
        let request = Request::new().headers(headers).timeout(Some(TIMEOUT));
        let request = self.client.send_request(subject.clone(), request);
        let Err(error) = self.wait(self.permitted(request, &quoted(&subject)))? else {
            return Ok(());
        };
        let remedy = match error.kind() {
            RequestErrorKind::NoResponders => {
                "the stream has other subjects: choose another `prefix`, or delete the stream if no other program uses it"
            }
            _ if !self.is_connected() => "the server is away: start it",
            _ => "check that the stream has a leader, with `nats stream info`",
        };
        Err(NatsError::Stream {
            stream,
            server: self.address.server.clone(),
            problem: format!("no answer to a message to `{subject}`: {error}; {remedy}"),
        })
    }

    /// Checks that this user may acknowledge tickets, by an acknowledgement for a consumer that does not exist. If it is permitted, the server
    /// answers that no one receives it.
    pub(crate) fn check_acknowledge(&self) -> Result<(), NatsError> {
        let subject = format!("$JS.ACK.{}.none.1.1.1.0.0", self.stream_of_partitions());
        let request = Request::new().timeout(Some(TIMEOUT));
        let request = self.client.send_request(subject.clone(), request);
        self.wait(self.permitted(request, &quoted(&subject))).map(drop)
    }

    /// Subscribes to stop requests.
    pub(crate) fn subscribe_to_stops(&self) -> Result<Subscriber, NatsError> {
        self.subscribe(self.subject_of_stops())
    }

    /// Subscribes to a subject. A message without partitions shows whether this user may send and receive.
    pub(crate) fn subscribe(&self, subject: String) -> Result<Subscriber, NatsError> {
        let subscribed = async {
            let subscribed = self.client.subscribe(subject.clone()).await;
            let mut messages = subscribed.map_err(|error| error.to_string())?;
            let sent = self.client.publish(subject.clone(), "[]".into()).await;
            sent.map_err(|error| error.to_string())?;
            let received = timeout(TIMEOUT, messages.next()).await;
            received.map_err(|_| format!("no message to `{subject}` arrives"))?;
            Ok(messages)
        };
        let subscribed: Result<_, String> = self.wait(self.permitted(subscribed, &quoted(&subject)))?;
        subscribed.map_err(|problem| NatsError::Connection {
            server: self.address.server.clone(),
            problem: format!("{problem}; check that the server runs at this address"),
        })
    }
}

/// Asks a consumer for messages in a way that the server rejects, so that it takes none: only to see a missing permission.
pub(crate) async fn try_pull(client: &Client, stream: &str, consumer: &str) {
    let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
    let request = Request::new().payload("{".into()).timeout(Some(TIMEOUT));
    if let Err(error) = client.send_request(subject, request).await {
        tracing::debug!(%error, "the server does not answer a wrong request for messages");
    }
}

/// Returns a subject as it is in a violation.
fn quoted(subject: &str) -> String {
    format!("\"{subject}\"")
}
