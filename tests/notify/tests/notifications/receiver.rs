//! A server that receives webhooks.

use batch_tests::http::{HttpServer, Manner, Request};
use serde_json::Value;

/// A request of a webhook.
pub(crate) struct Delivered(Request);

impl Delivered {
    pub(crate) fn target(&self) -> &str {
        self.0.target()
    }

    /// Returns the value of a header, which it has.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.0.header(name).unwrap()
    }

    pub(crate) fn body(&self) -> &str {
        std::str::from_utf8(&self.0.body).unwrap()
    }

    pub(crate) fn event(&self) -> Value {
        serde_json::from_str(self.body()).unwrap()
    }

    /// Returns the type without its prefix.
    pub(crate) fn kind(&self) -> String {
        let event = self.event();
        let kind = event["type"].as_str().unwrap().strip_prefix("batch.");
        kind.unwrap().to_owned()
    }

    pub(crate) fn execution(&self) -> i64 {
        self.event()["data"]["execution"].as_i64().unwrap()
    }
}

pub(crate) struct Receiver(HttpServer);

impl Receiver {
    pub(crate) fn new(manner: Manner) -> Self {
        Self(HttpServer::new(manner))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks/token", self.0.address())
    }

    pub(crate) fn set(&self, manner: Manner) {
        self.0.set(manner);
    }

    /// Returns what has arrived, with any response.
    pub(crate) fn received(&self) -> Vec<Delivered> {
        self.0.requests().into_iter().map(Delivered).collect()
    }

    /// Waits until a number of requests have arrived.
    pub(crate) fn wait_for(&self, number: usize) -> Vec<Delivered> {
        let requests = self.0.until(|requests| requests.len() >= number);
        requests.into_iter().map(Delivered).collect()
    }
}
