//! Serves metrics for Prometheus at `http://ADDRESS:PORT/metrics` while a job runs, and the health of the process at `/health`.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{AddrParseError, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::error::CliError;
use crate::print::errln;

/// The time limit of a client to send its request, and to read the response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a request, in bytes; the rest is ignored.
const LONGEST: u64 = 8 * 1024;
/// The interval at which the exporter drains its histograms.
const UPKEEP: Duration = Duration::from_secs(5);

/// The address of the metrics endpoint: a port of the loopback address, or an IP address with a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(SocketAddr);

impl FromStr for Address {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        let of_port = text.parse().map(|port| (Ipv4Addr::LOCALHOST, port).into());
        of_port.or_else(|_| text.parse()).map(Self)
    }
}

/// Starts the metrics endpoint if an address is configured. Port 0 picks a free port, which is printed.
pub(crate) fn serve(address: Option<Address>, health: &Health) -> Result<(), CliError> {
    let Some(Address(address)) = address else {
        return Ok(());
    };
    let at = start(address, health.clone()).map_err(|source| CliError::Metrics { address, source })?;
    errln!("metrics at http://{at}/metrics");
    Ok(())
}

/// The health of the process: it is up, or it drains.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<AtomicBool>);

impl Health {
    /// Reports from now on that the process takes no more work.
    pub(crate) fn set_draining(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn response(&self) -> (&'static str, String) {
        match self.0.load(Ordering::Relaxed) {
            false => ("200 OK", "{\"status\":\"up\"}\n".into()),
            true => ("503 Service Unavailable", "{\"status\":\"draining\"}\n".into()),
        }
    }
}

fn start(address: SocketAddr, health: Health) -> Result<SocketAddr, Box<dyn Error + Send + Sync>> {
    let listener = TcpListener::bind(address)?;
    let at = listener.local_addr()?;
    let handle = PrometheusBuilder::new().install_recorder()?;
    let upkeep = handle.clone();
    spawn("batch-metrics", move || {
        respond_to_all(&listener, &handle, &health)
    })?;
    spawn("batch-metrics-upkeep", move || {
        loop {
            thread::sleep(UPKEEP);
            upkeep.run_upkeep();
        }
    })?;
    Ok(at)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Responds to one client after the other; Prometheus is the only regular one.
fn respond_to_all(listener: &TcpListener, handle: &PrometheusHandle, health: &Health) {
    for client in listener.incoming() {
        // A client that disconnects needs no response.
        let _ = client.and_then(|client| respond(&client, handle, health));
    }
}

fn respond(mut client: &TcpStream, handle: &PrometheusHandle, health: &Health) -> std::io::Result<()> {
    client.set_read_timeout(Some(TIMEOUT))?;
    client.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(client.take(LONGEST));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    let mut header = String::new();
    // A client whose request is not read to its end would see a broken connection.
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    let mut words = request.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", handle.render()),
        (Some("GET"), Some("/health")) => health.response(),
        (Some("GET"), _) => (
            "404 Not Found",
            String::from("not found: the metrics are at /metrics, the health at /health\n"),
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
