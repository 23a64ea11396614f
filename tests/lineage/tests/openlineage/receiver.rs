//! A server that collects and validates events.

use batch_tests::http::{HttpServer, Manner, Request};
use serde_json::Value;

use crate::schema;

/// A running receiver.
pub(crate) struct Receiver(HttpServer);

impl Receiver {
    pub(crate) fn that(manner: Manner) -> Self {
        Self(HttpServer::new(manner))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0.address())
    }

    /// Returns the heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        let requests = self.0.requests().into_iter();
        requests.map(|request| request.head).collect()
    }

    /// Returns the events that were accepted, after each is validated.
    pub(crate) fn events(&self) -> Vec<Value> {
        let requests = self.0.requests();
        let accepted = requests.iter().filter(|request| request.is_accepted);
        let events: Vec<Value> = accepted.map(event).collect();
        events.iter().for_each(schema::validate);
        events
    }

    /// Waits until this number of events have arrived.
    pub(crate) fn wait_for(&self, number: usize) {
        self.0.until(|requests| requests.len() >= number);
    }
}

fn event(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}
