//! `httpCall`, with a server in the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use batch_runtime::parameters::SecretReference;
use batch_runtime::{BatchStatus, JobParameters};

use super::stage::{Stage, log_with};

/// A request as the server has received it.
#[derive(Debug)]
struct Received {
    /// Such as `GET /path HTTP/1.1`.
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A server that gives these responses, one on each connection.
struct Server {
    address: String,
    thread: JoinHandle<Vec<Received>>,
}

impl Server {
    fn new(responses: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let responses: Vec<String> = responses.iter().map(|&response| response.to_owned()).collect();
        let thread = thread::spawn(move || {
            let answer = |response: String| {
                let (mut stream, _) = listener.accept().unwrap();
                let request = receive(&stream);
                stream.write_all(response.as_bytes()).unwrap();
                request
            };
            responses.into_iter().map(answer).collect()
        });
        Self { address, thread }
    }

    fn url(&self) -> String {
        format!("http://{}/path", self.address)
    }

    /// Waits until the server has given all responses.
    fn received(self) -> Vec<Received> {
        self.thread.join().unwrap()
    }
}

fn receive(stream: &TcpStream) -> Received {
    let mut reader = BufReader::new(stream);
    let mut next = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let line = next();
    let mut headers = Vec::new();
    loop {
        let header = next();
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut received = Received {
        line,
        headers,
        body: String::new(),
    };
    let length = received
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    reader.take(length).read_to_string(&mut received.body).unwrap();
    received
}

fn response(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n{body}")
}

fn stage(url: &str, more: &[(&str, &str)]) -> Stage {
    let mut properties = vec![("url", url), ("retry.delay", "1ms")];
    properties.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
    properties.extend(more);
    Stage::new("httpCall", &properties)
}

#[test]
fn the_response_is_stored_when_it_is_complete() {
    let server = Server::new(&[&response("200 OK", "", "a;b\n1;2\n")]);
    let stage = stage(
        &format!("{}?from=1", server.url()),
        &[
            ("output", "${folder}/out/rates.csv"),
            ("headers", "Accept: text/csv\nX-Run: 7"),
        ],
    );
    assert_eq!(stage.run().completed(), "HTTP 200");
    assert_eq!(stage.read("out/rates.csv"), "a;b\n1;2\n");
    assert_eq!(stage.list("out"), ["rates.csv"]);
    let received = server.received();
    assert_eq!(received[0].line, "GET /path?from=1 HTTP/1.1");
    assert_eq!(received[0].header("accept"), Some("text/csv"));
    assert_eq!(received[0].header("x-run"), Some("7"));
}

#[test]
fn a_broken_response_is_requested_again_and_a_large_one_fails() {
    let half = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\nhalf";
    let server = Server::new(&[half, &response("200 OK", "", "whole")]);
    let stage = stage(&server.url(), &[("output", "${folder}/out/a")]);
    assert_eq!(stage.run().completed(), "HTTP 200");
    assert_eq!(stage.read("out/a"), "whole");
    server.received();

    let server = Server::new(&[&response("200 OK", "", "12345")]);
    let ended = stage.wait(stage.start([("url", server.url().as_str()), ("output.limit", "4")]));
    assert!(
        ended
            .failed()
            .contains("the response is larger than `output.limit`"),
        "{}",
        ended.message
    );
    assert_eq!(stage.read("out/a"), "whole", "the old file");
    assert_eq!(stage.list("out"), ["a"]);
    server.received();
}

#[test]
fn bodies_are_texts_or_files() {
    let server = Server::new(&[&response("201 Created", "", ""), &response("200 OK", "", "")]);
    let stage = stage(
        &server.url(),
        &[
            ("method", "post"),
            ("body", "{\"day\": 1}"),
            ("headers", "Content-Type: application/json"),
        ],
    );
    assert_eq!(stage.run().completed(), "HTTP 201");
    let of_file = self::stage(
        &server.url(),
        &[("method", "PUT"), ("body.file", "${folder}/body.txt")],
    );
    of_file.write("body.txt", "content");
    assert_eq!(of_file.run().completed(), "HTTP 200");
    let received = server.received();
    assert_eq!(received[0].line, "POST /path HTTP/1.1");
    assert_eq!(received[0].header("content-type"), Some("application/json"));
    assert_eq!(received[0].body, "{\"day\": 1}");
    assert_eq!(received[1].line, "PUT /path HTTP/1.1");
    assert_eq!(received[1].body, "content");

    let ended = self::stage("http://127.0.0.1/", &[("body", "x")]).run();
    assert!(
        ended.failed().contains("a GET request has no body"),
        "{}",
        ended.message
    );
    let missing = [("method", "POST"), ("body.file", "${folder}/none")];
    let ended = self::stage("http://127.0.0.1/", &missing).run();
    assert!(
        ended.failed().contains("cannot read the `body.file`"),
        "{}",
        ended.message
    );
}

#[test]
fn temporary_failures_are_retried() {
    let unavailable = response("503 Service Unavailable", "", "");
    let server = Server::new(&[
        "",
        &unavailable,
        &response("429 Slow", "Retry-After: 0\r\n", ""),
        &response("204 No", "", ""),
    ]);
    let stage = stage(&server.url(), &[]);
    assert_eq!(stage.run().completed(), "HTTP 204");
    assert_eq!(server.received().len(), 4);
    assert_eq!(log_with(&stage_address(&stage)).len(), 3);

    let server = Server::new(&[&unavailable, &unavailable]);
    let ended = self::stage(&server.url(), &[("retry.limit", "1")]).run();
    let expected = format!(
        "cannot call GET {}: the service answered 503 Service Unavailable; 2 attempts have failed",
        server.url()
    );
    assert!(ended.failed().contains(&expected), "{}", ended.message);
    server.received();
}

/// Returns the address in the job of a stage.
fn stage_address(stage: &Stage) -> String {
    let xml = stage.read("job.xml");
    let start = xml.find("http://").unwrap();
    xml[start..].split('"').next().unwrap().to_owned()
}

#[test]
fn other_failures_are_not_retried() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "404 Not Found",
        "500 Internal Server Error",
    ] {
        let server = Server::new(&[&response(status, "Retry-After: 0\r\n", "no such\n shop")]);
        let ended = stage(&server.url(), &[]).run();
        assert!(
            ended
                .failed()
                .contains(&format!("the service answered {status}: no such shop")),
            "{}",
            ended.message
        );
        server.received();
    }
    let server = Server::new(&[&response("404 Not Found", "", "")]);
    let ended = stage(&server.url(), &[("expected.status", "200..299, 404=NOT FOUND")]).run();
    ended.completed_as("NOT FOUND");
    assert_eq!(ended.message, "HTTP 404");
    server.received();
}

#[test]
fn the_service_decides_how_long_to_wait() {
    let server = Server::new(&[&response("503 Service Unavailable", "Retry-After: 3600\r\n", "")]);
    let ended = stage(&server.url(), &[]).run();
    let expected = "its `Retry-After` of 3600 s is longer than `retry.delay.limit`";
    assert!(ended.failed().contains(expected), "{}", ended.message);
    server.received();
}

#[test]
fn a_post_is_repeated_only_with_a_key_which_a_restart_keeps() {
    let unavailable = response("503 Service Unavailable", "", "");
    let server = Server::new(&[&unavailable]);
    let ended = stage(&server.url(), &[("method", "POST")]).run();
    assert!(
        ended
            .failed()
            .contains("only retried if `idempotency.key` is set"),
        "{}",
        ended.message
    );
    assert_eq!(server.received()[0].header("idempotency-key"), None);

    let created = response("201 Created", "", "");
    let server = Server::new(&[&unavailable, &unavailable, &created, &created]);
    let stage = stage(
        &server.url(),
        &[
            ("method", "POST"),
            ("idempotency.key", "billing"),
            ("retry.limit", "1"),
        ],
    );
    let ended = stage.run();
    ended.failed();
    assert_eq!(stage.restart(ended.id, ()).completed(), "HTTP 201");
    // Another instance is another request.
    assert_eq!(stage.run().completed(), "HTTP 201");
    let received = server.received();
    let keys: Vec<_> = received
        .iter()
        .map(|request| request.header("idempotency-key").unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "billing-job-1-step",
            "billing-job-1-step",
            "billing-job-1-step",
            "billing-job-2-step"
        ]
    );
}

#[test]
fn credentials_are_sent_and_never_shown() {
    // It returns what it has received, as debug pages do.
    let echo = response(
        "500 Internal Server Error",
        "",
        "got Basic bWU6czNjcmV0LTY2 and t0ken-66",
    );
    let server = Server::new(&[&echo]);
    let url = format!("http://me:s3cret-66@{}/path?key=query-66", server.address);
    let ended = stage(&url, &[("headers", "X-Api-Token: t0ken-66")]).run();
    let message = ended.failed();
    assert!(
        message.contains(&format!("cannot call GET http://{}/path: ", server.address)),
        "{message}"
    );
    assert!(message.contains("got *** and ***"), "{message}");
    let received = server.received();
    assert_eq!(
        received[0].header("authorization"),
        Some("Basic bWU6czNjcmV0LTY2")
    );
    assert_eq!(received[0].header("x-api-token"), Some("t0ken-66"));

    let server = Server::new(&[&response("200 OK", "", "")]);
    let stage = stage(&server.url(), &[("headers", "Authorization: Bearer ${token}")]);
    stage.write("token", "secret-bearer-66");
    let reference = SecretReference::File(stage.name("token"));
    let ended = stage.wait(stage.start(JobParameters::new().with_secret("token", reference)));
    assert_eq!(ended.completed(), "HTTP 200");
    assert_eq!(
        server.received()[0].header("authorization"),
        Some("Bearer secret-bearer-66")
    );

    for problem in [
        ("url", "http://me:s3cret-66@ho st/"),
        ("headers", "Authorization s3cret-66"),
    ] {
        let stage = self::stage("http://127.0.0.1/", &[problem]);
        let ended = stage.run();
        assert!(!ended.failed().contains("66"), "{}", ended.message);
    }
    for secret in ["s3cret-66", "czNjcmV0LTY2", "t0ken-66", "query-66", "bearer-66"] {
        assert_eq!(log_with(secret), [""; 0]);
    }
}

#[test]
fn a_redirect_to_another_host_gets_no_credentials() {
    let other = Server::new(&[&response("200 OK", "", "")]);
    let location = format!("Location: {}\r\n", other.url().replace("127.0.0.1", "localhost"));
    let server = Server::new(&[&response("302 Found", &location, "")]);
    let ended = stage(&server.url(), &[("headers", "Authorization: Bearer abcdef")]).run();
    assert_eq!(ended.completed(), "HTTP 200");
    assert_eq!(
        server.received()[0].header("authorization"),
        Some("Bearer abcdef")
    );
    assert_eq!(other.received()[0].header("authorization"), None);
}

#[test]
fn a_service_that_cannot_be_reached_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let ended = stage(&url, &[("retry.limit", "2")]).run();
    let message = ended.failed();
    assert!(message.contains(&format!("cannot call GET {url}: ")), "{message}");
    assert!(
        message.contains("refused") && message.contains("3 attempts have failed"),
        "{message}"
    );
}

/// The server receives the request and sends nothing until the test ends.
#[test]
fn a_stop_ends_the_call() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let stage = stage(&url, &[("output", "${folder}/a")]);
    for beginning in ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"] {
        let execution = stage.start(());
        let (mut stream, _) = listener.accept().unwrap();
        receive(&stream);
        stream.write_all(beginning.as_bytes()).unwrap();
        let ended = stage.stop(execution);
        assert_eq!(
            (ended.status, ended.exit_status.as_str()),
            (BatchStatus::Stopped, "STOPPED")
        );
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the connection is closed");
    }
    assert!(!stage.path("a").exists());
}

/// The pause takes an hour.
#[test]
fn a_stop_ends_the_pause_before_a_retry() {
    let server = Server::new(&[&response("503 Service Unavailable", "", "")]);
    let more = [("retry.delay", "1h"), ("retry.delay.limit", "1h")];
    let stage = stage(&server.url(), &more);
    let ended = stage.start_and_stop(|| !log_with(&server.url()).is_empty());
    assert_eq!(
        (ended.status, ended.exit_status.as_str()),
        (BatchStatus::Stopped, "STOPPED")
    );
    server.received();
}

#[test]
fn a_timeout_ends_an_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let ended = stage(&url, &[("timeout", "50ms"), ("retry.limit", "1")]).run();
    assert!(ended.failed().contains("timeout"), "{}", ended.message);
    assert!(
        ended.message.contains("2 attempts have failed"),
        "{}",
        ended.message
    );
}

#[test]
fn wrong_properties_are_reported_before_the_start() {
    for (property, problem) in [
        (("url", "ftp://example.org/"), "begins with http:// or https://"),
        (("method", "FETCH"), "expected GET, HEAD, POST"),
        (("expected.status", "2xx"), "expected a status code"),
        (("expected.status", "404="), "expected a status code"),
        (("output.limit", "much"), "expected a number of bytes"),
        (("timeout", "soon"), "expected a duration"),
    ] {
        let stage = stage("http://127.0.0.1/", &[property]);
        let error = stage.operator().start("job", ()).unwrap_err().to_string();
        assert!(error.contains(problem), "{property:?}: {error}");
    }
}
