//! The metrics for Prometheus, at `http://127.0.0.1:PORT/metrics` while a job runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::config::{Config, Setting};
use super::print::err;

/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer questions are not read.
const LONGEST: u64 = 8 * 1024;
/// What has been recorded is put in order so often.
const UPKEEP: Duration = Duration::from_secs(5);

/// Begins to answer, if the settings say so. Port 0 is any free one; which it is is told.
pub(super) fn serve(config: &Config) -> Result<(), String> {
    let Some(port) = config.port()? else {
        return Ok(());
    };
    let (_, origin) = config.get(Setting::MetricsPort);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| format!("{origin}: no metrics on port {port}: {error}"))?;
    let at = listener
        .local_addr()
        .map_err(|error| format!("no metrics on port {port}: {error}"))?;
    let handle = PrometheusBuilder::new()
        .install_recorder()
        .map_err(|error| format!("no metrics: {error}"))?;
    let of_upkeep = handle.clone();
    let threads = [
        spawn("batch-metrics", move || answer(&listener, &handle)),
        spawn("batch-metrics-upkeep", move || {
            loop {
                thread::sleep(UPKEEP);
                of_upkeep.run_upkeep();
            }
        }),
    ];
    threads
        .into_iter()
        .collect::<Result<(), _>>()
        .map_err(|error| format!("no metrics: {error}"))?;
    err(format_args!("metrics at http://{at}/metrics"));
    Ok(())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

/// One client after the other: there is one, or a curious person.
fn answer(listener: &TcpListener, handle: &PrometheusHandle) {
    for client in listener.incoming() {
        // One that goes away is not missed.
        let _ = client.and_then(|client| answer_to(&client, handle));
    }
}

fn answer_to(mut client: &TcpStream, handle: &PrometheusHandle) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(client.take(LONGEST));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    let mut header = String::new();
    // A client that is not heard out sees a broken connection.
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    let mut words = request.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", handle.render()),
        (Some("GET"), _) => ("404 Not Found", String::from("there is only /metrics\n")),
        _ => ("405 Method Not Allowed", String::from("there is only GET\n")),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
