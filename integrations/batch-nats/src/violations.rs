//! Permission errors, which the server reports outside the response.

use std::future::{self, Future};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{Event, ServerError};
use futures_util::future::{Either, select};
use tokio::sync::watch;

/// The events of a connection: its last permission error, in the words of the server, and interruptions, which are logged.
#[derive(Clone)]
pub(crate) struct Violations {
    last: Arc<watch::Sender<String>>,
    is_interrupted: Arc<AtomicBool>,
}

impl Violations {
    pub(crate) fn new() -> Self {
        Self {
            last: Arc::new(watch::Sender::new(String::new())),
            is_interrupted: Arc::default(),
        }
    }

    /// Notes an event of the connection.
    pub(crate) fn note(&self, event: &Event) {
        match event {
            Event::Disconnected => {
                self.is_interrupted.store(true, Ordering::Relaxed);
                tracing::warn!("disconnected from the NATS server; reconnecting");
            }
            // Also sent for the first connection.
            Event::Connected if self.is_interrupted.swap(false, Ordering::Relaxed) => {
                tracing::warn!("connected to the NATS server again");
            }
            Event::ServerError(ServerError::Other(problem)) => {
                tracing::warn!(problem, "the NATS server reports an error");
                if problem.to_lowercase().starts_with("permissions violation") {
                    self.last.send_replace(problem.clone());
                }
            }
            _ => {}
        }
    }

    /// Returns the result of an operation; or else, as an error, the violation that it commits. `is_meant` finds it among others.
    pub(crate) async fn or_result<T>(
        &self,
        operation: impl Future<Output = T>,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<T, String> {
        let mut violations = self.last.subscribe();
        let violation = async {
            while violations.changed().await.is_ok() {
                let violation = violations.borrow_and_update().clone();
                if is_meant(&violation) {
                    return violation;
                }
            }
            future::pending().await
        };
        match select(pin!(operation), pin!(violation)).await {
            Either::Left((result, _)) => Ok(result),
            Either::Right((violation, _)) => Err(violation),
        }
    }
}

/// Returns what a violation forbids, and its subject, from the words of the server: `Permissions Violation for Publish to "a.b"`.
pub(crate) fn parts(violation: &str) -> (&'static str, &str) {
    let action = match violation.to_lowercase().contains("for subscription") {
        true => "subscribe to",
        false => "publish to",
    };
    let subject = violation.split('"').nth(1);
    (action, subject.unwrap_or(violation))
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn violations_have_an_action_and_a_subject() {
        for (violation, expected) in [
            (
                "Permissions Violation for Publish to \"$JS.ACK.a\"",
                ("publish to", "$JS.ACK.a"),
            ),
            (
                "Permissions Violation for Subscription to \"a.stop\" using queue \"b\"",
                ("subscribe to", "a.stop"),
            ),
        ] {
            assert_eq!(parts(violation), expected);
        }
    }
}
