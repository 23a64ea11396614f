//! Many open pages.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use diesel::prelude::*;

use crate::program::{Scene, Served, until};

/// Returns a number of `/proc/PID/status`.
fn status_of(served: &Served, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.process())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Opens the stream of events of a page.
fn follow(served: &Served) -> BufReader<TcpStream> {
    let address = served.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");
    reader
}

/// Open streams are limited; pages are served nevertheless.
///
/// Spec: CON-08
#[test]
fn streams_are_limited() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let all: Vec<_> = (0..256).map(|_| follow(&served)).collect();
    assert_eq!(served.get("/events").0, 503);
    assert_eq!(served.get("/").0, 200);
    drop(all);
    until("a stream is free", || {
        (follow_status(&served) == 200).then_some(())
    });
}

/// Returns the status of a request for a stream.
fn follow_status(served: &Served) -> u16 {
    let response = served.response("GET", "/events", &[], "");
    response.status().as_u16()
}

/// The counters of a partition change nothing in the row of its step.
///
/// Spec: CON-08
#[test]
fn the_progress_of_a_partition_is_a_change() {
    let scene = Scene::new();
    scene.kill_at_gate("day=1");
    let statement = |text: &str| diesel::sql_query(text).execute(&mut scene.connect()).unwrap();
    statement(
        "INSERT INTO BATCH_STEP_EXECUTION SELECT STEP_EXECUTION_ID + 1000, 1, 'branches:1', JOB_EXECUTION_ID, START_TIME, NULL, \
         'STARTED', 1, 1, 0, 1, 0, 0, 0, 0, '', '', LAST_UPDATED FROM BATCH_STEP_EXECUTION LIMIT 1",
    );
    let served = scene.serve(&[]);
    let mut page = follow(&served);
    let next_change = |page: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        while !line.starts_with("event: change") {
            line.clear();
            assert!(page.read_line(&mut line).unwrap() > 0, "the stream has ended");
        }
    };
    // The first look at the repository.
    next_change(&mut page);
    statement("UPDATE BATCH_STEP_EXECUTION SET READ_COUNT = 2 WHERE STEP_NAME = 'branches:1'");
    next_change(&mut page);
}

/// Each of 200 open pages receives a change, and the process has no more threads for them and little more memory.
///
/// Spec: CON-08
#[test]
fn open_pages_cost_nothing() {
    const PAGES: usize = 200;
    let scene = Scene::new();
    let served = scene.serve(&[]);
    // The threads for queries exist, and a job has run.
    for _ in 0..20 {
        served.get("/");
    }
    let first: Vec<_> = (0..20).map(|_| follow(&served)).collect();
    let (threads, memory) = (status_of(&served, "Threads:"), status_of(&served, "VmRSS:"));
    let more: Vec<_> = (first.len()..PAGES).map(|_| follow(&served)).collect();
    scene.run(&["launch", "nightly", "day=1"]);
    for mut page in first.into_iter().chain(more) {
        let mut line = String::new();
        while !line.starts_with("event: change") {
            line.clear();
            assert!(page.read_line(&mut line).unwrap() > 0, "the stream has ended");
        }
    }
    // The pool of threads for queries may grow to its limit.
    assert!(status_of(&served, "Threads:") <= threads + 16);
    let grown = status_of(&served, "VmRSS:").saturating_sub(memory);
    assert!(grown < 32 * 1024, "{grown} KiB for {PAGES} streams");
}

/// Connections without a request are limited, and closed after a while: the jobs of the process need descriptors, and other users the console.
///
/// Spec: CON-08
#[test]
fn half_requests_are_limited_and_closed() {
    const CONNECTIONS: usize = 600;
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let descriptors = || {
        let all = fs::read_dir(format!("/proc/{}/fd", served.process())).unwrap();
        all.count()
    };
    let before = descriptors();
    let address = served.url.trim_start_matches("http://");
    let all: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    // It is accepted after them: when one is closed, or at once if there is no limit.
    assert_eq!(served.get("/health/live").0, 200);
    assert!(
        descriptors() < before + CONNECTIONS,
        "{} descriptors",
        descriptors()
    );
    drop(all);
}
