//! An HTTP server that collects and validates events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::schema;

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
    /// Responds 503 to so many, and accepts the others.
    FailsFirst(usize),
}

/// What has arrived.
#[derive(Default)]
pub(crate) struct Received {
    /// The events that were accepted.
    pub(crate) events: Vec<Value>,
    /// The heads of all requests.
    pub(crate) heads: Vec<String>,
}

struct Shared {
    received: Mutex<Received>,
    arrived: Condvar,
    manner: Manner,
}

/// A running receiver.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    pub(crate) fn that(manner: Manner) -> Self {
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
                let serving = Arc::clone(&serving);
                thread::spawn(move || serve(client, &serving));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.shared.received.lock().unwrap()
    }

    /// Returns the events, after each is validated.
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = self.received().events.clone();
        events.iter().for_each(schema::validate);
        events
    }

    /// Waits until enough has arrived.
    pub(crate) fn until(&self, is_enough: impl Fn(&Received) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut received = self.received();
        while !is_enough(&received) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{:#?}", received.events);
            (received, _) = self.shared.arrived.wait_timeout(received, left).unwrap();
        }
    }
}

/// Serves the requests of a connection.
fn serve(client: TcpStream, shared: &Shared) {
    let mut client = BufReader::new(client);
    while let Some((head, body)) = request(&mut client) {
        let status = {
            let mut received = shared.received.lock().unwrap();
            received.heads.push(head);
            let status = match shared.manner {
                Manner::Hangs => 0,
                Manner::Rejects(status) => status,
                Manner::FailsFirst(count) if received.heads.len() <= count => 503,
                Manner::Accepts | Manner::FailsFirst(_) => 201,
            };
            if status == 201 {
                received.events.push(serde_json::from_slice(&body).unwrap());
            }
            status
        };
        shared.arrived.notify_all();
        if status == 0 {
            loop {
                thread::park();
            }
        }
        let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        if client.get_mut().write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request: its head, and its body. `None` at the end of the connection.
fn request(reader: &mut BufReader<impl Read>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}
