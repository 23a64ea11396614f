//! The health of the process, at `--metrics-port`; its metrics are tested with those over OTLP.
#![cfg(unix)]

use std::fs;
use std::net::TcpStream;

use batch_tests::http::get;
use batch_tests::operated::Operated;

const JOB: &str = r#"<job id="waits"><step id="wait"><batchlet ref="Patient"/></step></job>"#;

/// A probe of another host cannot reach the loopback address, which is the default.
#[test]
fn the_process_serves_at_the_address_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("waits.xml"), JOB).unwrap();
    fs::write(folder.path().join("go"), "").unwrap();
    let launch = |address: &str| {
        let arguments = ["launch", "waits", "--metrics-port", address];
        Operated::run(env!("CARGO_BIN_EXE_operated"), folder.path(), &arguments)
    };
    // An address of documentation, which no host has.
    let mut job = launch("203.0.113.1:9464");
    job.until("error: cannot serve health and metrics at 203.0.113.1:9464: ");
    assert_eq!(job.ends().code(), Some(2));
    for (given, served, is_reached) in [("0", "127.0.0.1", false), ("0.0.0.0:0", "0.0.0.0", true)] {
        let mut job = launch(given);
        let at = job.address_of("health");
        let (address, port) = at.split_once(':').unwrap();
        assert_eq!(address, served);
        let elsewhere = TcpStream::connect(format!("127.0.0.2:{port}"));
        assert_eq!(elsewhere.is_ok(), is_reached, "{given}");
        if is_reached {
            assert_eq!(
                get(&format!("127.0.0.2:{port}"), "GET /health").0,
                "HTTP/1.1 200 OK"
            );
        }
        job.until("waiting");
        job.signal("TERM");
        assert_eq!(job.ends().code(), Some(3));
    }
}

/// A program without the feature explains why it serves no metrics.
#[test]
fn metrics_are_optional() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("waits.xml"), JOB).unwrap();
    fs::write(folder.path().join("go"), "").unwrap();
    let arguments = ["launch", "waits", "--metrics-port", "0"];
    let mut job = Operated::run(env!("CARGO_BIN_EXE_operated"), folder.path(), &arguments);
    let address = job.address_of("health");
    job.until("waiting");
    let (status, body) = get(&address, "GET /metrics");
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    assert!(body.contains("compiled with the feature `prometheus`"), "{body}");
    assert_eq!(get(&address, "GET /").0, "HTTP/1.1 404 Not Found");
    assert_eq!(get(&address, "POST /health").0, "HTTP/1.1 405 Method Not Allowed");
    job.signal("TERM");
    assert_eq!(job.ends().code(), Some(3));
}
