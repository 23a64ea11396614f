//! A proxy between the runtime and its database server that cuts connections: before a request, or after the server has
//! sent the answer and before it arrives.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use batch_test_servers::Kind;

/// The place of the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The request does not reach the server, which sees the connection end.
    Request,
    /// The server executes the request; its answer is lost.
    Answer,
    /// The request reaches the server, and the connection is cut at once: the next connection may find it still
    /// running.
    AtWork,
}

/// A function that is called before a request is passed on.
pub type BeforeRequest = Box<dyn FnMut() + Send>;

enum Strike {
    Cut(Cut),
    Call(BeforeRequest),
    /// The connection is cut, and the request passed on when this returns true.
    Late(Until),
}

/// A condition that is polled.
pub type Until = Box<dyn FnMut() -> bool + Send>;

/// The plan, and its progress.
#[derive(Default)]
struct Plan {
    /// The number of requests since the proxy was created.
    requests: u64,
    /// True if only requests that end a transaction are counted.
    commits_only: bool,
    strikes: VecDeque<(u64, Strike)>,
    struck: u64,
    /// True while a called function has not returned.
    is_calling: bool,
    /// True when all waits must end.
    is_over: bool,
}

/// A plan, and a notification for calls that have returned.
#[derive(Default)]
struct Watched {
    plan: Mutex<Plan>,
    is_back: Condvar,
}

impl Watched {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the action for the next request.
    fn next(&self, request: &[u8]) -> Option<Strike> {
        let mut plan = self.plan();
        if plan.commits_only && !request.windows(COMMIT.len()).any(|text| text == COMMIT) {
            return None;
        }
        plan.requests += 1;
        let now = plan.requests;
        if plan.strikes.front().is_some_and(|(at, _)| *at <= now) {
            plan.struck += 1;
            let strike = plan.strikes.pop_front().map(|(_, strike)| strike);
            plan.is_calling |= matches!(strike, Some(Strike::Call(_) | Strike::Late(_)));
            return strike;
        }
        None
    }

    fn call(&self, mut call: BeforeRequest) {
        // A panic wakes a waiting thread, too.
        let _calling = Calling(self);
        call();
    }

    /// Polls until the condition holds, or the run is over.
    fn wait(&self, mut until: Until) {
        let _calling = Calling(self);
        while !until() && !self.plan().is_over {
            thread::yield_now();
        }
    }
}

const COMMIT: &[u8] = b"COMMIT";

struct Calling<'a>(&'a Watched);

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.plan().is_calling = false;
        self.0.is_back.notify_all();
    }
}

/// A socket that passes everything on to a server, and counts the requests of all connections.
pub struct Proxy {
    folder: tempfile::TempDir,
    kind: Kind,
    watched: Arc<Watched>,
}

impl Proxy {
    /// Creates a proxy for the server at this socket.
    ///
    /// # Panics
    /// If the socket cannot be created.
    pub fn start(kind: Kind, server: PathBuf) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let name = match kind {
            Kind::Postgres => ".s.PGSQL.5432",
            Kind::Mariadb => "socket",
        };
        let listener = UnixListener::bind(folder.path().join(name)).expect("a socket");
        let watched = Arc::<Watched>::default();
        let shared = Arc::clone(&watched);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                // A stopped server refuses connections; so does the proxy.
                let Ok(server) = UnixStream::connect(&server) else {
                    continue;
                };
                let watched = Arc::clone(&shared);
                thread::spawn(move || pass_on(kind, &client, &server, &watched));
            }
        });
        Self {
            folder,
            kind,
            watched,
        }
    }

    /// Returns the URL of a database, through the proxy.
    pub fn url(&self, database: &str) -> String {
        let folder: &Path = self.folder.path();
        match self.kind {
            Kind::Postgres => format!("postgres:///{database}?host={}&user=postgres", folder.display()),
            Kind::Mariadb => format!(
                "mysql://root@localhost/{database}?unix_socket={}/socket",
                folder.display()
            ),
        }
    }

    /// Counts requests from now on.
    pub fn count(&self) {
        *self.watched.plan() = Plan::default();
    }

    /// Counts requests from 1, and cuts the connection at this number.
    pub fn cut(&self, cut: Cut, request: u64) {
        self.strike(request, Strike::Cut(cut));
    }

    /// Counts requests from 1, and calls this before the request with this number is passed on.
    pub fn call_before(&self, request: u64, call: BeforeRequest) {
        self.strike(request, Strike::Call(call));
    }

    /// Counts COMMITs from now on. The connection of the one with this number is cut, and the server gets it later:
    /// until then its transaction is open.
    pub fn commit_late(&self, number: u64, until: Until) {
        self.strike(number, Strike::Late(until));
    }

    /// Counts COMMITs from 1. The server executes the one with this number; its answer is lost.
    pub fn cut_commit(&self, number: u64) {
        self.strike(number, Strike::Cut(Cut::Answer));
        self.watched.plan().commits_only = true;
    }

    fn strike(&self, request: u64, strike: Strike) {
        *self.watched.plan() = Plan {
            commits_only: matches!(strike, Strike::Late(_)),
            strikes: VecDeque::from([(request, strike)]),
            ..Plan::default()
        };
    }

    /// Returns the number of counted requests.
    pub fn requests(&self) -> u64 {
        self.watched.plan().requests
    }

    /// Stops cutting, and waits for running calls.
    ///
    /// Returns the number of cuts.
    pub fn rest(&self) -> u64 {
        let mut plan = self.watched.plan();
        plan.strikes.clear();
        plan.is_over = true;
        while plan.is_calling {
            let waited = self.watched.is_back.wait(plan);
            plan = waited.unwrap_or_else(PoisonError::into_inner);
        }
        plan.struck
    }
}

/// Copies until one of the two ends.
fn pass_on(kind: Kind, client: &UnixStream, server: &UnixStream, watched: &Watched) {
    // Set if the answer to the next request must be lost.
    let deaf = Mutex::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 65_536];
            let (mut from, mut to) = (server, client);
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                let is_deaf = *deaf.lock().unwrap_or_else(PoisonError::into_inner);
                if is_deaf || to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            cut(client, server);
        });
        let (mut from, mut to) = (client, server);
        let mut requests = Requests::new(kind);
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let bytes = &bytes[..count];
            if requests.come(bytes) {
                match watched.next(bytes) {
                    Some(Strike::Cut(Cut::Request)) => break,
                    Some(Strike::Cut(Cut::AtWork)) => {
                        // The connection may have closed already.
                        let _ = to.write_all(bytes);
                        break;
                    }
                    Some(Strike::Cut(Cut::Answer)) => {
                        *deaf.lock().unwrap_or_else(PoisonError::into_inner) = true;
                    }
                    Some(Strike::Call(call)) => watched.call(call),
                    Some(Strike::Late(until)) => {
                        // The connection may have closed already.
                        let _ = client.shutdown(Shutdown::Both);
                        watched.wait(until);
                        let _ = to.write_all(bytes);
                        break;
                    }
                    None => {}
                }
            }
            if to.write_all(bytes).is_err() {
                break;
            }
        }
        cut(client, server);
    });
}

fn cut(client: &UnixStream, server: &UnixStream) {
    // One of them may have closed already.
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

/// Finds the starts of requests. Both client libraries send a request in one piece, and the next one after its answer.
struct Requests {
    kind: Kind,
    /// PostgreSQL: true after the client's start-up message, which is not a request.
    has_begun: bool,
}

impl Requests {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            has_begun: false,
        }
    }

    /// Returns whether a request ends with these bytes.
    fn come(&mut self, bytes: &[u8]) -> bool {
        match self.kind {
            Kind::Postgres => {
                // A message is a letter and its length; `Q` is a statement, `S` requests the answer to the preceding
                // messages.
                let ends = bytes[0] == b'Q' || bytes.ends_with(&[b'S', 0, 0, 0, 4]);
                std::mem::replace(&mut self.has_begun, true) && ends
            }
            // A length of three bytes, a sequence number that is zero for a request, and the command; the answer to the
            // greeting has another number.
            Kind::Mariadb => bytes.len() > 4 && bytes[3] == 0,
        }
    }
}
