//! A collector: an HTTP server that decodes what it receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

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

/// Longer than anything takes that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the receiver treats a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Accepts it.
    Accepts,
    /// Never responds.
    Hangs,
    /// Responds with this status.
    Rejects(u16),
}

/// What has arrived.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) traces: Vec<ResourceSpans>,
    pub(crate) metrics: Vec<ResourceMetrics>,
    pub(crate) logs: Vec<ResourceLogs>,
    /// The heads of the requests.
    pub(crate) heads: Vec<String>,
}

impl Received {
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

struct Shared {
    received: Mutex<Received>,
    arrived: Condvar,
    manner: Manner,
}

/// A running receiver.
pub(crate) struct Receiver {
    scheme: &'static str,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    pub(crate) fn that(manner: Manner) -> Self {
        Self::by(manner, None)
    }

    /// Starts one that speaks TLS.
    pub(crate) fn with_tls() -> Self {
        Self::by(Manner::Accepts, Some(tls()))
    }

    fn by(manner: Manner, tls: Option<Arc<ServerConfig>>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            arrived: Condvar::new(),
            manner,
        });
        let serving = Arc::clone(&shared);
        // It serves until the test program ends.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (serving, tls) = (Arc::clone(&serving), tls.clone());
                thread::spawn(move || match tls {
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        serve(StreamOwned::new(connection, client), &serving);
                    }
                    None => serve(client, &serving),
                });
            }
        });
        Self {
            scheme,
            address,
            shared,
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.shared.received.lock().unwrap()
    }

    /// Waits until enough has arrived.
    pub(crate) fn until(&self, is_enough: impl Fn(&Received) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut received = self.received();
        while !is_enough(&received) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} spans have arrived", received.spans().len());
            (received, _) = self.shared.arrived.wait_timeout(received, left).unwrap();
        }
    }
}

/// Serves the requests of a connection.
fn serve(client: impl Read + Write, shared: &Shared) {
    let mut client = BufReader::new(client);
    while let Some((head, body)) = request(&mut client) {
        let path = head.split_whitespace().nth(1).unwrap().to_owned();
        {
            let mut received = shared.received.lock().unwrap();
            received.heads.push(head);
            if shared.manner == Manner::Accepts {
                store(&mut received, &path, &body);
            }
        }
        shared.arrived.notify_all();
        let status = match shared.manner {
            Manner::Accepts => 200,
            Manner::Rejects(status) => status,
            Manner::Hangs => loop {
                thread::park();
            },
        };
        let response = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
        );
        let sent = client.get_mut().write_all(response.as_bytes());
        if sent.and_then(|()| client.get_mut().flush()).is_err() {
            return;
        }
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

fn store(received: &mut Received, path: &str, body: &[u8]) {
    match path {
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

/// Reads a request: its head in lowercase, and its body. `None` at the end of the connection.
fn request(reader: &mut BufReader<impl Read>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    if head.contains("content-encoding: gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&body[..])
            .read_to_end(&mut plain)
            .ok()?;
        body = plain;
    }
    Some((head, body))
}
