//! Serves metrics for Prometheus at `http://ADDRESS:PORT/metrics` while a job runs (feature `prometheus`), and the health of the process at
//! `/health` and `/health/live`.

use std::error::Error;
use std::fmt;
use std::io::{Read, Write};
use std::net::{AddrParseError, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::worker::WorkerHealth;
use serde_json::json;

use crate::error::CliError;
use crate::print::errln;
use crate::prometheus::{self, Metrics};
use crate::telemetry::Telemetry;

/// The time limit of a client to send its request, and to read the response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a request, in bytes; the rest is ignored.
const LONGEST: usize = 8 * 1024;
/// Clients that are served at the same time; more are disconnected.
const MOST_CLIENTS: usize = 32;

const NO_METRICS: &str =
    "not found: batch-cli serves metrics if it is compiled with the feature `prometheus`\n";

/// The address of the metrics endpoint: a port of the loopback address, or an IP address with a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Address {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        let of_port = text.parse().map(|port| (Ipv4Addr::LOCALHOST, port).into());
        of_port.or_else(|_| text.parse()).map(Self)
    }
}

/// Starts the endpoint if an address is configured. Port 0 picks a free port, which is printed. The metrics go to `telemetry`, too.
pub(crate) fn serve(
    address: Option<Address>,
    health: &Health,
    telemetry: &Telemetry,
) -> Result<(), CliError> {
    let Some(Address(address)) = address else {
        prometheus::send(telemetry);
        return Ok(());
    };
    let failed = |source| CliError::Metrics { address, source };
    let metrics = Metrics::collect(telemetry).map_err(failed)?;
    start(address, health.clone(), metrics).map_err(failed)
}

/// Collects metrics, and serves them if an address is configured.
#[cfg(feature = "console")]
pub(crate) fn collect_and_serve(
    address: Option<Address>,
    health: &Health,
    telemetry: &Telemetry,
) -> Result<Metrics, CliError> {
    let at = address.map_or_else(|| (Ipv4Addr::LOCALHOST, 0).into(), |Address(address)| address);
    let failed = |source| CliError::Metrics { address: at, source };
    let metrics = Metrics::collect(telemetry).map_err(failed)?;
    if let Some(Address(address)) = address {
        start(address, health.clone(), metrics.clone()).map_err(failed)?;
    }
    Ok(metrics)
}

/// The health of the process: it is up unless it is a worker that drains or is stuck.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<Mutex<Option<WorkerHealth>>>);

impl Health {
    /// Sets the health of the worker.
    pub(crate) fn set(&self, health: WorkerHealth) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(health);
    }

    /// Returns the status line, and the health as JSON.
    fn response(&self, probe: Probe) -> (&'static str, String) {
        let health = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (is_well, body) = match health {
            Some(WorkerHealth::Draining) => (probe == Probe::Alive, json!({"status": "draining"})),
            Some(WorkerHealth::Stuck { reason }) => (false, json!({"status": "stuck", "reason": reason})),
            _ => (true, json!({"status": "up"})),
        };
        let status = if is_well {
            "200 OK"
        } else {
            "503 Service Unavailable"
        };
        (status, format!("{body}\n"))
    }
}

/// What is asked of the health.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// Whether it takes work.
    Ready,
    /// Whether it is worth keeping: a process that is not should be replaced.
    Alive,
}

/// Starts the endpoint, and prints its address.
fn start(address: SocketAddr, health: Health, metrics: Metrics) -> Result<(), Box<dyn Error + Send + Sync>> {
    let listener = TcpListener::bind(address)?;
    let at = listener.local_addr()?;
    let has_metrics = metrics.text().is_some();
    spawn("batch-metrics", move || {
        respond_to_all(&listener, &metrics, &health)
    })?;
    if has_metrics {
        errln!("metrics at http://{at}/metrics");
    }
    errln!("health at http://{at}/health");
    Ok(())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Responds to each client on a separate thread, so that a slow one delays no health probe.
fn respond_to_all(listener: &TcpListener, metrics: &Metrics, health: &Health) {
    let connected = Arc::new(());
    for client in listener.incoming() {
        let (Ok(client), true) = (client, Arc::strong_count(&connected) <= MOST_CLIENTS) else {
            continue;
        };
        let (metrics, health, connected) = (metrics.clone(), health.clone(), Arc::clone(&connected));
        let spawned = spawn("batch-metrics-client", move || {
            // A client that disconnects needs no response.
            let _ = respond(&client, &metrics, &health);
            drop(connected);
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "cannot start a thread for a client of the metrics");
        }
    }
}

fn respond(mut client: &TcpStream, metrics: &Metrics, health: &Health) -> std::io::Result<()> {
    client.set_write_timeout(Some(TIMEOUT))?;
    let request = read_request(client)?;
    let mut words = request.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => match metrics.text() {
            Some(text) => ("200 OK", text),
            None => ("404 Not Found", String::from(NO_METRICS)),
        },
        (Some("GET"), Some("/health")) => health.response(Probe::Ready),
        (Some("GET"), Some("/health/live")) => health.response(Probe::Alive),
        (Some("GET"), _) => (
            "404 Not Found",
            String::from("not found: the metrics are at /metrics, the health at /health and /health/live\n"),
        ),
        _ => (
            "405 Method Not Allowed",
            String::from("method not allowed: use GET\n"),
        ),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Reads the head of a request to its end, since a client that could not send all of it would see a broken connection.
fn read_request(mut client: &TcpStream) -> std::io::Result<String> {
    let deadline = Instant::now() + TIMEOUT;
    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        // The time for all of it, however slowly its bytes arrive.
        let left = deadline.saturating_duration_since(Instant::now());
        client.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let read = client.read(&mut piece)?;
        request.extend_from_slice(&piece[..read]);
        let is_whole = request.windows(4).any(|end| end == b"\r\n\r\n");
        if is_whole || read == 0 || request.len() >= LONGEST || left.is_zero() {
            return Ok(String::from_utf8_lossy(&request).into_owned());
        }
    }
}
