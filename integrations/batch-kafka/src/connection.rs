//! A connection to a broker: frames, versions of requests, authentication.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use batch_items::queue::{Fault, POLL, Waiting};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, RequestHeader, ResponseHeader, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use kafka_protocol::{ResponseError, messages};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::address::{Access, Address};
use super::codes::fault_of;
use super::sasl::{Login, Mechanism, Scram};
use super::tls;

/// The time limit for a connection and for each request, without the wait of a broker for messages.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest response. What another server than a broker sends looks like a larger one.
const LARGEST: usize = 256 << 20;
/// The newest versions of requests that this client uses. Later ones name topics by ids.
const NEWEST: [(ApiKey, i16); 7] = [
    (ApiKey::Produce, 9),
    (ApiKey::Fetch, 12),
    (ApiKey::ListOffsets, 6),
    (ApiKey::Metadata, 12),
    (ApiKey::InitProducerId, 4),
    (ApiKey::SaslHandshake, 1),
    (ApiKey::SaslAuthenticate, 2),
];

/// A connection, which is authenticated.
pub(super) struct Connection {
    stream: Stream,
    address: Address,
    last_id: i32,
    /// The versions of each request that the broker supports.
    versions: BTreeMap<i16, (i16, i16)>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A request whose response is still to come.
pub(super) struct Sent {
    id: i32,
    version: i16,
}

impl Connection {
    /// Connects to a broker.
    pub(super) fn open(address: &Address, access: &Access, waiting: &Waiting) -> Result<Self, Fault> {
        let stream = connect(address, access.tls.as_ref())
            .map_err(|problem| Fault::Transient(format!("cannot connect to {address}: {problem}")))?;
        let mut connection = Self {
            stream,
            address: address.clone(),
            last_id: 0,
            versions: BTreeMap::new(),
        };
        connection.ask_versions(waiting)?;
        if let Some(login) = &access.login {
            connection.authenticate(login, waiting)?;
        }
        Ok(connection)
    }

    /// Sends a request and waits for its response.
    pub(super) fn call<R: Request>(&mut self, request: &R, waiting: &Waiting) -> Result<R::Response, Fault> {
        let sent = self.send(request)?;
        self.receive::<R>(&sent, Duration::ZERO, waiting)
    }

    /// Sends a request, in the newest version that both sides know.
    pub(super) fn send<R: Request>(&mut self, request: &R) -> Result<Sent, Fault> {
        let version = self.version(R::KEY)?;
        self.send_version(request, version)
    }

    fn send_version<R: Request>(&mut self, request: &R, version: i16) -> Result<Sent, Fault> {
        self.last_id = self.last_id.wrapping_add(1);
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.last_id)
            .with_client_id(Some(StrBytes::from_static_str("batch-items")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        header
            .encode(&mut frame, R::header_version(version))
            .and_then(|()| request.encode(&mut frame, version))
            .map_err(|error| Fault::Permanent(format!("the request cannot be encoded: {error}")))?;
        let length = i32::try_from(frame.len() - 4);
        let length = length.map_err(|_| Fault::Permanent("the request is larger than 2 GiB".to_owned()))?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        let written = self.stream.write_all(&frame).and_then(|()| self.stream.flush());
        written.map_err(|error| self.lost(&error))?;
        Ok(Sent {
            id: self.last_id,
            version,
        })
    }

    /// Waits for the response to a request, `extra` longer than usual.
    pub(super) fn receive<R: Request>(
        &mut self,
        sent: &Sent,
        extra: Duration,
        waiting: &Waiting,
    ) -> Result<R::Response, Fault> {
        let deadline = Instant::now() + TIMEOUT + extra;
        let mut length = [0; 4];
        self.read(&mut length, deadline, waiting)?;
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > LARGEST {
            return Err(Fault::Permanent(format!(
                "{} does not answer as a Kafka broker does; check the port and `tls`",
                self.address
            )));
        }
        let mut frame = vec![0; length];
        self.read(&mut frame, deadline, waiting)?;
        let mut frame = Bytes::from(frame);
        let bad = |problem: String| {
            Fault::Permanent(format!(
                "cannot understand the response of {}: {problem}",
                self.address
            ))
        };
        let header = ResponseHeader::decode(&mut frame, R::Response::header_version(sent.version));
        let header = header.map_err(|error| bad(error.to_string()))?;
        if header.correlation_id != sent.id {
            return Err(bad("it is that of another request".to_owned()));
        }
        R::Response::decode(&mut frame, sent.version).map_err(|error| bad(error.to_string()))
    }

    fn read(&mut self, mut buffer: &mut [u8], deadline: Instant, waiting: &Waiting) -> Result<(), Fault> {
        while !buffer.is_empty() {
            match self.stream.read(buffer) {
                Ok(0) => return Err(self.lost(&io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) && Instant::now() < deadline => {
                    if waiting.is_stopping() {
                        return Err(Fault::Stopped);
                    }
                }
                Err(error) => return Err(self.lost(&error)),
            }
        }
        Ok(())
    }

    fn lost(&self, error: &io::Error) -> Fault {
        let address = &self.address;
        Fault::Transient(match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                format!(
                    "{address} has closed the connection; check that it runs, and `tls`, `user` and `mechanism`"
                )
            }
            _ if is_timeout(error) => format!("{address} does not answer"),
            _ => format!("the connection to {address} is lost: {error}"),
        })
    }

    fn version(&self, key: i16) -> Result<i16, Fault> {
        let newest = NEWEST.iter().find(|(known, _)| *known as i16 == key);
        let supported = self.versions.get(&key);
        let oldest = ApiKey::try_from(key).map(|key| key.valid_versions().min);
        match (newest, supported, oldest) {
            (Some((_, newest)), Some((from, to)), Ok(oldest)) if oldest <= *to && from <= newest => {
                Ok(*newest.min(to))
            }
            _ => Err(Fault::Permanent(format!(
                "{} does not support a request of this client ({key}); Kafka 2.1 or later is needed",
                self.address
            ))),
        }
    }

    fn ask_versions(&mut self, waiting: &Waiting) -> Result<(), Fault> {
        // Every broker understands the first version.
        let sent = self.send_version(&ApiVersionsRequest::default(), 0)?;
        let response = self.receive::<ApiVersionsRequest>(&sent, Duration::ZERO, waiting)?;
        if let Some(fault) = fault_of(response.error_code, "cannot ask for versions") {
            return Err(fault);
        }
        let versions = response.api_keys.iter();
        self.versions = versions
            .map(|api| (api.api_key, (api.min_version, api.max_version)))
            .collect();
        Ok(())
    }

    fn authenticate(&mut self, login: &Login, waiting: &Waiting) -> Result<(), Fault> {
        let mechanism = StrBytes::from_static_str(login.mechanism.name());
        let response = self.call(
            &SaslHandshakeRequest::default().with_mechanism(mechanism),
            waiting,
        )?;
        if response.error_code != 0 {
            let offered: Vec<_> = response
                .mechanisms
                .iter()
                .map(|name| name.to_lowercase())
                .collect();
            return Err(Fault::Permanent(format!(
                "{} does not accept the mechanism `{}`; set `mechanism` to one that it does: {}",
                self.address,
                login.mechanism.name().to_lowercase(),
                offered.join(", ")
            )));
        }
        if login.mechanism == Mechanism::Plain {
            return self.exchange(login, login.plain(), waiting).map(|_| ());
        }
        let scram = Scram::new(login).map_err(Fault::Permanent)?;
        let server = self.exchange(login, scram.first(), waiting)?;
        let (last, expected) = scram.last(&server).map_err(Fault::Permanent)?;
        let server = self.exchange(login, last, waiting)?;
        // A server that does not know the password cannot sign.
        match *server == *expected.as_bytes() {
            true => Ok(()),
            false => Err(Fault::Permanent(format!(
                "{} cannot prove that it knows the password of `{}`; check the address",
                self.address, login.user
            ))),
        }
    }

    fn exchange(&mut self, login: &Login, message: Vec<u8>, waiting: &Waiting) -> Result<Bytes, Fault> {
        let request = SaslAuthenticateRequest::default().with_auth_bytes(message.into());
        let response: messages::SaslAuthenticateResponse = self.call(&request, waiting)?;
        match ResponseError::try_from_code(response.error_code) {
            None => Ok(response.auth_bytes),
            Some(error) => Err(Fault::Permanent(format!(
                "{} rejects the user `{}` ({error}); check `user`, `password` and `mechanism`",
                self.address, login.user
            ))),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn connect(address: &Address, tls: Option<&tls::Config>) -> Result<Stream, String> {
    let resolved = (address.host.as_str(), address.port).to_socket_addrs();
    let resolved = resolved.map_err(|error| format!("{error}; check the name of the host"))?;
    let mut problem = "the host has no address".to_owned();
    for socket in resolved {
        let stream = TcpStream::connect_timeout(&socket, TIMEOUT).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            Ok(stream)
        });
        match stream {
            Ok(stream) => return secured(stream, address, tls),
            Err(error) => problem = format!("{error}; check that a broker runs at this address"),
        }
    }
    Err(problem)
}

/// Encrypts the connection, if need be. From then on, reading stops to check for a stop request.
fn secured(mut stream: TcpStream, address: &Address, tls: Option<&tls::Config>) -> Result<Stream, String> {
    let polling = |stream: &TcpStream| {
        let set = stream.set_read_timeout(Some(POLL));
        set.map_err(|error| error.to_string())
    };
    let Some(config) = tls else {
        polling(&stream)?;
        return Ok(Stream::Plain(stream));
    };
    let name = ServerName::try_from(address.host.clone()).map_err(|error| error.to_string())?;
    let mut connection = ClientConnection::new(config.clone(), name).map_err(|error| error.to_string())?;
    while connection.is_handshaking() {
        let handshake = connection.complete_io(&mut stream);
        handshake
            .map_err(|error| format!("{error}; check that the broker expects TLS here, and `tls.ca`"))?;
    }
    polling(&stream)?;
    Ok(Stream::Tls(Box::new(StreamOwned::new(connection, stream))))
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
