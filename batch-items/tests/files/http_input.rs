//! Input from HTTP servers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use batch_items::{JsonLinesItemReader, LineItemReader};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;

use super::stage::{Stage, pass};

#[item_reader("HttpLineReader")]
type HttpLineReader = LineItemReader<u64>;
#[item_reader("HttpJsonReader")]
type HttpJsonReader = JsonLinesItemReader<u64>;
#[item_writer("HttpLineWriter")]
type HttpLineWriter = batch_items::LineItemWriter<u64>;

pass!(PassLine: u64);

#[derive(BatchArtifact)]
struct CreateNothing {}

#[batchlet("createNothing")]
impl CreateNothing {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        Ok("CREATED".into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// A server with one file; its thread ends with the process.
struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    content: Vec<u8>,
    has_ranges: bool,
    /// Lines of each head of an answer.
    headers: String,
    requests: Vec<String>,
}

impl Server {
    fn new(content: impl Into<Vec<u8>>, has_ranges: bool, headers: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State {
            content: content.into(),
            has_ranges,
            headers: headers.to_owned(),
            requests: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let state = Arc::clone(&shared);
                thread::spawn(move || while answer(client.as_ref().unwrap(), &state).is_some() {});
            }
        });
        Self { address, state }
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

/// Answers a request; `None` at the end of the connection.
fn answer(client: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let (mut input, mut request, mut range) = (BufReader::new(client), String::new(), String::new());
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let (name, value) = line.trim_end().split_once(": ").unwrap_or((line.trim_end(), ""));
        match name.to_ascii_lowercase().as_str() {
            "" => break,
            "range" => range = value.replace("bytes=", " "),
            "authorization" => request += &format!(" {value}"),
            _ if request.is_empty() => request = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned(),
            _ => {}
        }
    }
    request += &range;
    let mut state = state.lock().unwrap();
    let range = range.trim().split_once('-').filter(|_| state.has_ranges);
    let range = range.and_then(|(from, to)| Some(from.parse::<usize>().ok()?..=to.parse::<usize>().ok()?));
    let size = state.content.len();
    let (status, range) = match &range {
        _ if !request.contains(" /in") => (String::from("404 Not Found\r\n"), 0..0),
        _ if request.contains("expired") => (String::from("403 Forbidden\r\n"), 0..0),
        Some(range) => {
            let (from, to) = (*range.start(), (range.end() + 1).min(size));
            let range = format!(
                "206 Partial Content\r\nContent-Range: bytes {from}-{}/{size}\r\n",
                to - 1
            );
            (range, from..to)
        }
        None => (String::from("200 OK\r\n"), 0..size),
    };
    let body = &state.content[range];
    let head = format!(
        "HTTP/1.1 {status}{}Content-Length: {}\r\n\r\n",
        state.headers,
        body.len()
    );
    let is_head = request.starts_with("HEAD");
    (&*client).write_all(head.as_bytes()).ok()?;
    let sent = (&*client).write_all(if is_head { b"" } else { body });
    state.requests.push(request);
    sent.ok()
}

fn stage(url: &str, properties: &str) -> Stage {
    Stage::new(
        "reader=\"HttpLineReader\" processor=\"PassLine\" writer=\"HttpLineWriter\" commit-interval=\"2\"",
        &format!("resource={url}\noutput=${{dir}}/out\nstore.options=retries=0\n{properties}"),
    )
}

fn lines(last: u64) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

/// A restart requests a range, or, if the server has none, all again; the output is the same.
#[test]
fn a_restart_resumes_with_and_without_ranges() {
    for (has_ranges, headers) in [
        (
            true,
            "ETag: W/\"1\"\r\nLast-Modified: Thu, 29 Feb 2024 12:30:00 GMT\r\n",
        ),
        (true, ""),
        (false, "ETag: \"1\"\r\n"),
        (false, ""),
    ] {
        for fail_at in 1..=9 {
            let server = Server::new(lines(9), has_ranges, headers);
            let stage = stage(&format!("http://{}/in.txt", server.address), "");
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            assert!(
                failed.message.contains("stopped by the test"),
                "{}",
                failed.message
            );
            server.requests();
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
            assert_eq!(stage.read("out"), lines(9), "{has_ranges} {fail_at}");
            let position = (fail_at - 1) / 2 * 4;
            let range = format!("GET /in.txt {position}-17");
            assert!(server.requests().contains(&range), "{has_ranges} {fail_at}");
        }
    }
}

#[test]
fn a_changed_file_is_an_error() {
    for has_ranges in [true, false] {
        let server = Server::new(lines(9), has_ranges, "ETag: \"1\"\r\n");
        let stage = stage(&format!("http://{}/in.txt?key=hidden", server.address), "");
        let failed = stage.start([("fail.at", "5")]);
        server.state.lock().unwrap().headers = "ETag: \"2\"\r\n".to_owned();
        let again = stage.restart(&failed, [("fail.at", "0")]);
        let expected = format!(
            "cannot resume reading `http://{}/in.txt`: it has changed since the checkpoint: its ETag is another",
            server.address
        );
        assert!(again.message.starts_with(&expected), "{}", again.message);
    }
}

/// User and query are sent, and nowhere else.
#[test]
fn secrets_of_the_url_are_sent_and_not_shown() {
    let server = Server::new(lines(3), true, "");
    let url = |path: &str| format!("http://me:hid%20den@{}{path}", server.address);
    let completed = stage(&url("/in%2Ftxt?key=a%2Fhidden"), "file.field=");
    completed.completes();
    assert_eq!(completed.read("out"), lines(3));
    for request in server.requests() {
        assert!(
            request.contains("/in%2Ftxt?key=a%2Fhidden Basic bWU6aGlkIGRlbg=="),
            "{request}"
        );
    }
    for (path, expected) in [
        ("/none?key=hidden", "/none`: the server does not have it"),
        (
            "/in?expired=hidden",
            "is denied; check the user, the password and the query of the URL",
        ),
    ] {
        let message = stage(&url(path), "").fails();
        assert!(
            message.contains(expected) && !message.contains("hid"),
            "{message}"
        );
        assert!(
            message.starts_with(&format!("cannot read `http://{}/", server.address)),
            "{message}"
        );
    }
    // A failed step leaves a checkpoint.
    let chunk =
        "reader=\"HttpLineReader\" processor=\"PassLine\" writer=\"HttpLineWriter\" commit-interval=\"1\"";
    let properties = format!(
        "resource={}\noutput=${{dir}}/out\nfail.at=3",
        url("/in?key=hidden")
    );
    let failed = Stage::after_step("createNothing", chunk, &properties, "");
    assert!(failed.fails().contains("stopped by the test"));
    let stored =
        ["batch.db", "batch.db-wal"].map(|file| fs::read(failed.path().join(file)).unwrap_or_default());
    let stored = String::from_utf8_lossy(&stored.concat()).into_owned();
    assert!(stored.contains(&format!("http://{}/in\\", server.address)));
    assert!(!stored.contains("hidden") && !stored.contains("hid%20den"));
    let message = stage("http://me:hidden@127.0.0.1:1/in?key=hidden", "").fails();
    assert!(
        message.contains("Connection refused") && !message.contains("hidden"),
        "{message}"
    );
    let message = stage("http://me:hidden@[/in?key=hidden", "").fails();
    assert!(
        message.contains("the URL is not valid") && !message.contains("hidden"),
        "{message}"
    );
}

#[test]
fn other_formats_and_missing_files() {
    let server = Server::new("1\n\n2\n", true, "");
    let chunk = "reader=\"HttpJsonReader\" processor=\"PassLine\" writer=\"HttpLineWriter\"";
    let url = format!("http://{}/in", server.address);
    let stage = Stage::new(chunk, &format!("resource={url}\noutput=${{dir}}/out"));
    stage.completes();
    assert_eq!(stage.read("out"), lines(2));
    let missing = format!(
        "resource=http://{}/none\noutput=${{dir}}/out\nif.missing=empty",
        server.address
    );
    let stage = Stage::new(chunk, &missing);
    assert_eq!(stage.completes().reads, 0);
}
