//! A proxy before the object store, which notes the requests and can make some of them fail.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use batch_test_servers::ObjectServer;

/// Each client has its own; its thread ends with the process.
pub(crate) struct Proxy {
    endpoint: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<String>>,
    /// Requests with this text lose their answer.
    lose: Mutex<Option<String>>,
}

impl Proxy {
    pub(crate) fn new() -> Self {
        let target = ObjectServer::shared().endpoint().trim_start_matches("http://");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (server, state) = (TcpStream::connect(target).unwrap(), Arc::clone(&shared));
                thread::spawn(move || serve(&client.unwrap(), &server, &state));
            }
        });
        Self { endpoint, state }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the requests since the last call: the method, the path with the query, and the range.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }

    /// From now on, requests that contain a text are carried out, but their answers are lost.
    pub(crate) fn lose(&self, text: Option<&str>) {
        *self.state.lose.lock().unwrap() = text.map(str::to_owned);
    }
}

/// Carries the requests and the answers of a connection, one after the other.
fn serve(client: &TcpStream, server: &TcpStream, state: &State) {
    let (mut from_client, mut from_server) = (BufReader::new(client), BufReader::new(server));
    while let Ok(Some((request, _))) = pass(&mut from_client, server, false) {
        let is_head = request.starts_with("HEAD ");
        let loses = state
            .lose
            .lock()
            .unwrap()
            .as_ref()
            .is_some_and(|text| request.contains(text));
        state.requests.lock().unwrap().push(request);
        let mut answer = Vec::new();
        if pass(&mut from_server, &mut answer, is_head).is_err()
            || loses
            || (&*client).write_all(&answer).is_err()
        {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

/// Passes on a request or an answer, and returns its first line with the range, and the length of the body.
fn pass(from: &mut impl BufRead, mut to: impl Write, is_head: bool) -> io::Result<Option<(String, u64)>> {
    let (mut head, mut first, mut length, mut is_chunked) = (String::new(), String::new(), 0, false);
    loop {
        let start = head.len();
        if from.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        let line = head[start..].trim_end();
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match name.to_ascii_lowercase().as_str() {
            "" => break,
            "content-length" => length = value.parse().unwrap(),
            "transfer-encoding" => is_chunked = true,
            "range" => first = format!("{first} {value}"),
            _ if start == 0 => first = line.trim_end_matches(" HTTP/1.1").to_owned(),
            _ => {}
        }
    }
    to.write_all(head.as_bytes())?;
    if is_chunked && !is_head {
        pass_chunks(from, &mut to)?;
    } else if !is_head {
        io::copy(&mut from.take(length), &mut to)?;
    }
    to.flush()?;
    Ok(Some((first, length)))
}

fn pass_chunks(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        to.write_all(line.as_bytes())?;
        let length = u64::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
        io::copy(&mut from.by_ref().take(length + 2), to)?;
        if length == 0 {
            return Ok(());
        }
    }
}
