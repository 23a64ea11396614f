//! A server that receives webhooks.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Longer than anything takes that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the receiver treats a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Responds with this status.
    Responds(u16),
    /// Never responds.
    Hangs,
    /// Closes the connection without a response.
    Dies,
}

pub(crate) const ACCEPTS: Manner = Manner::Responds(204);

/// A request.
#[derive(Clone)]
pub(crate) struct Delivered {
    pub(crate) target: String,
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Delivered {
    pub(crate) fn event(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the type without its prefix.
    pub(crate) fn kind(&self) -> String {
        let event = self.event();
        event["type"]
            .as_str()
            .unwrap()
            .strip_prefix("batch.")
            .unwrap()
            .to_owned()
    }

    pub(crate) fn execution(&self) -> i64 {
        self.event()["data"]["execution"].as_i64().unwrap()
    }
}

struct Shared {
    received: Mutex<Vec<Delivered>>,
    arrived: Condvar,
    manner: Mutex<Manner>,
}

pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    pub(crate) fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            arrived: Condvar::new(),
            manner: Mutex::new(manner),
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
        format!("http://{}/hooks/token", self.address)
    }

    pub(crate) fn set(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
    }

    /// Returns what has arrived, whatever the response.
    pub(crate) fn received(&self) -> Vec<Delivered> {
        self.shared.received.lock().unwrap().clone()
    }

    /// Waits until a number of requests have arrived.
    pub(crate) fn wait_for(&self, number: usize) -> Vec<Delivered> {
        let received = self.shared.received.lock().unwrap();
        let too_few = |received: &mut Vec<Delivered>| received.len() < number;
        let (received, waited) = self
            .shared
            .arrived
            .wait_timeout_while(received, PATIENCE, too_few)
            .unwrap();
        assert!(!waited.timed_out(), "{} of {number} requests", received.len());
        received.clone()
    }
}

/// Reads requests until the client closes the connection.
fn serve(client: TcpStream, shared: &Shared) {
    let mut input = BufReader::new(client.try_clone().unwrap());
    let mut output = client;
    while let Some(delivered) = read(&mut input) {
        shared.received.lock().unwrap().push(delivered);
        shared.arrived.notify_all();
        let manner = *shared.manner.lock().unwrap();
        match manner {
            Manner::Responds(status) => {
                let head = format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n");
                if output.write_all(head.as_bytes()).is_err() {
                    return;
                }
            }
            // Until the client gives up.
            Manner::Hangs => drop(input.read(&mut [0])),
            Manner::Dies => return,
        }
    }
}

fn read(input: &mut impl BufRead) -> Option<Delivered> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(Delivered {
        target,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
