//! What the server does not permit. It reports that beside the operation, which then gets no answer.

use std::future::{self, Future};
use std::pin::pin;
use std::sync::Arc;

use async_nats::{Event, ServerError};
use futures_util::future::{Either, select};
use tokio::sync::watch;

/// The last violation of a connection, in the words of the server.
#[derive(Clone)]
pub(crate) struct Violations(Arc<watch::Sender<String>>);

impl Violations {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(String::new())))
    }

    /// Notes an event of the connection.
    pub(crate) fn note(&self, event: &Event) {
        if let Event::ServerError(ServerError::Other(problem)) = event {
            tracing::warn!(problem, "the NATS server reports an error");
            if problem.to_lowercase().starts_with("permissions violation") {
                self.0.send_replace(problem.clone());
            }
        }
    }

    /// Returns the result of an operation; or else, as an error, the violation that it commits. `is_meant` finds it among others.
    pub(crate) async fn or_result<T>(
        &self,
        operation: impl Future<Output = T>,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<T, String> {
        let mut violations = self.0.subscribe();
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
