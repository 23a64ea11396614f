//! An HTTP server that keeps the requests which it receives, and treats them as the test requires; and a client for one request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the server treats a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Responds with this status.
    Responds(u16),
    /// Responds 503 to this number of requests, and 200 to the others.
    FailsFirst(usize),
    /// Never responds.
    Hangs,
    /// Closes the connection without a response.
    Dies,
}

/// The manner of a server that works.
pub const ACCEPTS: Manner = Manner::Responds(200);

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The request line and the headers.
    pub head: String,
    /// The body, as it was sent.
    pub body: Vec<u8>,
    /// True if the response was a status of success.
    pub is_accepted: bool,
}

impl Request {
    /// Returns the path and query.
    pub fn target(&self) -> &str {
        self.head.split_whitespace().nth(1).unwrap_or_default()
    }

    /// Returns the value of a header; `None` without it.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = headers.find(|(of, _)| of.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }
}

/// A running server. It serves until the test program ends.
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    manner: Mutex<Manner>,
}

impl HttpServer {
    /// Starts one on a free port.
    pub fn new(manner: Manner) -> Self {
        Self::by(manner, |client| client)
    }

    /// Starts one that talks to its clients through `connect`, such as by TLS.
    pub fn by<S: Read + Write>(
        manner: Manner,
        connect: impl Fn(TcpStream) -> S + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            arrived: Condvar::new(),
            manner: Mutex::new(manner),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (serving, connect) = (Arc::clone(&serving), connect.clone());
                thread::spawn(move || serve(connect(client), &serving));
            }
        });
        Self { address, shared }
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes how it treats further requests.
    pub fn set(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until enough has arrived.
    pub fn until(&self, is_enough: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        let deadline = Instant::now() + PATIENCE;
        let mut requests = self.shared.requests.lock().unwrap();
        while !is_enough(&requests) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} requests have arrived", requests.len());
            (requests, _) = self.shared.arrived.wait_timeout(requests, left).unwrap();
        }
        requests.clone()
    }
}

/// Serves the requests of a connection.
fn serve(client: impl Read + Write, shared: &Shared) {
    let mut client = BufReader::new(client);
    while let Some(mut request) = read(&mut client) {
        let manner = {
            let mut requests = shared.requests.lock().unwrap();
            let manner = match *shared.manner.lock().unwrap() {
                Manner::FailsFirst(count) if requests.len() < count => Manner::Responds(503),
                Manner::FailsFirst(_) => ACCEPTS,
                other => other,
            };
            request.is_accepted = matches!(manner, Manner::Responds(200..300));
            requests.push(request);
            manner
        };
        shared.arrived.notify_all();
        let status = match manner {
            Manner::Responds(status) => status,
            Manner::Hangs => loop {
                thread::park();
            },
            _ => return,
        };
        let response = format!("HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n");
        let sent = client.get_mut().write_all(response.as_bytes());
        if sent.and_then(|()| client.get_mut().flush()).is_err() {
            return;
        }
    }
}

/// Reads a request; `None` at the end of the connection.
fn read(client: &mut BufReader<impl Read>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if client.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut request = Request {
        head,
        body: Vec::new(),
        is_accepted: false,
    };
    request.body = vec![0; request.header("content-length")?.parse().ok()?];
    client.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// Sends a request, such as `GET /health`; returns the status line and the body of the response.
pub fn get(address: &str, request: &str) -> (String, String) {
    let mut server = TcpStream::connect(address).unwrap();
    write!(server, "{request} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    server.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}
