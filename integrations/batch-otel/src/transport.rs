//! HTTP requests to the collector. They block the thread that exports, which is one of the SDK.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use batch_runtime::url::redact;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};

/// The maximum length of a response in bytes; its content is not used.
const LONGEST_RESPONSE: u64 = 4 << 20;

/// The connection to the collector for one signal.
pub(crate) struct Transport {
    agent: Agent,
    signal: &'static str,
    /// True once a request has failed, until one succeeds.
    is_down: AtomicBool,
}

impl Transport {
    /// `timeout` covers a request and its response. `roots` replaces the certificates that the system trusts.
    pub(crate) fn new(signal: &'static str, timeout: Duration, roots: Option<RootCerts>) -> Self {
        let roots = roots.unwrap_or(RootCerts::PlatformVerifier);
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            // The headers may contain a token, which is for the collector only.
            .max_redirects(0)
            .user_agent(concat!("batch-otel/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build());
        Self {
            agent: config.build().new_agent(),
            signal,
            is_down: AtomicBool::new(false),
        }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let response = self.agent.run(Request::from_parts(parts, &body[..]))?;
        let (parts, mut body) = response.into_parts();
        let body = body.with_config().limit(LONGEST_RESPONSE).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }

    /// Notes a failure. Returns whether it is the first one since a request succeeded.
    fn failed(&self, at: &Uri, error: &dyn fmt::Display) -> bool {
        let is_first = !self.is_down.swap(true, Ordering::Relaxed);
        if is_first {
            let (signal, collector) = (self.signal, redact(&at.to_string()));
            tracing::warn!(
                "cannot send {signal} to the OpenTelemetry collector at {collector}: {error}; jobs run on, and {signal} are lost until it \
                 responds; check OTEL_EXPORTER_OTLP_ENDPOINT"
            );
        }
        is_first
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let at = request.uri().clone();
        match self.send(request) {
            Ok(response) if response.status().is_success() => {
                if self.is_down.swap(false, Ordering::Relaxed) {
                    tracing::info!(signal = self.signal, "the OpenTelemetry collector responds again");
                }
                Ok(response)
            }
            Ok(response) => {
                self.failed(&at, &format_args!("it responds {}", response.status()));
                Ok(response)
            }
            Err(error) if self.failed(&at, &error) => Err(error.into()),
            // The exporter repeats requests without a response; to a collector that is down it would only delay the end of the process.
            Err(_) => Ok(Response::builder().status(500).body(Bytes::new())?),
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transport({})", self.signal)
    }
}
