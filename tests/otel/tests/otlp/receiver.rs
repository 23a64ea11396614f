//! A collector: an HTTP server that decodes what it receives.

use std::io::Read;
use std::sync::Arc;

use batch_tests::http::{ACCEPTS, HttpServer, Manner, Request};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs};
use opentelemetry_proto::tonic::metrics::v1::{Metric, ResourceMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What has arrived.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) traces: Vec<ResourceSpans>,
    pub(crate) metrics: Vec<ResourceMetrics>,
    pub(crate) logs: Vec<ResourceLogs>,
    /// The heads of all requests, in lower case.
    pub(crate) heads: Vec<String>,
}

impl Received {
    fn of(requests: &[Request]) -> Self {
        let mut received = Self::default();
        for request in requests {
            received.heads.push(request.head.to_lowercase());
            if request.is_accepted {
                store(&mut received, request);
            }
        }
        received
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let scopes = self.traces.iter().flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Returns the metrics of the last export.
    pub(crate) fn last_metrics(&self) -> Vec<Metric> {
        let scopes = self.metrics.last().map(|resource| resource.scope_metrics.clone());
        let scopes = scopes.unwrap_or_default().into_iter();
        scopes.flat_map(|scope| scope.metrics).collect()
    }

    pub(crate) fn records(&self) -> Vec<LogRecord> {
        let scopes = self.logs.iter().flat_map(|resource| &resource.scope_logs);
        scopes.flat_map(|scope| scope.log_records.clone()).collect()
    }

    pub(crate) fn resources(&self) -> Vec<Resource> {
        let traces = self.traces.iter().map(|of| &of.resource);
        let metrics = self.metrics.iter().map(|of| &of.resource);
        let logs = self.logs.iter().map(|of| &of.resource);
        traces.chain(metrics).chain(logs).flatten().cloned().collect()
    }
}

/// A running receiver.
pub(crate) struct Receiver {
    scheme: &'static str,
    server: HttpServer,
}

impl Receiver {
    pub(crate) fn that(manner: Manner) -> Self {
        Self {
            scheme: "http",
            server: HttpServer::new(manner),
        }
    }

    /// Starts one that speaks TLS.
    pub(crate) fn with_tls() -> Self {
        let config = tls();
        let connect = move |client| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            StreamOwned::new(connection, client)
        };
        Self {
            scheme: "https",
            server: HttpServer::by(ACCEPTS, connect),
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("{}://{}", self.scheme, self.server.address())
    }

    pub(crate) fn received(&self) -> Received {
        Received::of(&self.server.requests())
    }

    /// Waits until enough has arrived.
    pub(crate) fn until(&self, is_enough: impl Fn(&Received) -> bool) {
        self.server.until(|requests| is_enough(&Received::of(requests)));
    }
}

/// Returns the configuration of a server with the certificate for tests, which `tls/ca.pem` has signed.
fn tls() -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem")).map(Result::unwrap);
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect(), key);
    Arc::new(config.unwrap())
}

fn store(received: &mut Received, request: &Request) {
    let mut plain = Vec::new();
    let body = match request.header("content-encoding") {
        Some("gzip") => {
            GzDecoder::new(&request.body[..]).read_to_end(&mut plain).unwrap();
            &plain[..]
        }
        _ => &request.body[..],
    };
    match request.target() {
        "/v1/traces" => {
            let request = ExportTraceServiceRequest::decode(body).unwrap();
            received.traces.extend(request.resource_spans);
        }
        "/v1/metrics" => {
            let request = ExportMetricsServiceRequest::decode(body).unwrap();
            received.metrics.extend(request.resource_metrics);
        }
        "/v1/logs" => {
            let request = ExportLogsServiceRequest::decode(body).unwrap();
            received.logs.extend(request.resource_logs);
        }
        other => panic!("unknown path {other}"),
    }
}
