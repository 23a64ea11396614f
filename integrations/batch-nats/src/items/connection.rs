//! The server, and the thread that the client runs on.

use std::future::{Future, ready};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time;

use async_nats::connection::State;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use batch_items::duration::Duration;
use batch_items::queue::{Attempts, DatasetName, Fault, POLL, Waiting};
use batch_runtime::BatchArtifact;
use batch_runtime::url::redact;
use tokio::runtime::Runtime;

/// The time limit for the first connection, and for each response of the server.
pub(super) const TIMEOUT: time::Duration = time::Duration::from_secs(5);

/// The connection of a reader or writer to NATS.
///
/// | property | default | |
/// |---|---|---|
/// | `servers` | required | servers of the cluster, `nats://host:4222` or `tls://host:4222`, separated by commas |
/// | `user`, `password` | none | set a [secret](batch_runtime::parameters::SecretReference) by a job parameter |
/// | `token` | none | a token in place of user and password |
/// | `credentials` | none | a file with a JWT and its key |
/// | `nkey` | none | a file with the seed of an NKey |
/// | `tls.ca` | the system | a file with certificates in PEM that the servers are trusted by |
/// | `tls.certificate`, `tls.key` | none | files in PEM with the certificate and the key of this client |
/// | `timeout` | `30s` | the time for which a request is tried again when the server cannot be reached |
///
/// A message shows none of the secrets.
#[derive(BatchArtifact)]
pub struct NatsConnection {
    #[batch_property(name = "servers")]
    servers: Servers,
    #[batch_property(name = "user")]
    user: Option<String>,
    #[batch_property(name = "password")]
    password: Option<String>,
    #[batch_property(name = "token")]
    token: Option<String>,
    #[batch_property(name = "credentials")]
    credentials: Option<PathBuf>,
    #[batch_property(name = "nkey")]
    nkey: Option<PathBuf>,
    #[batch_property(name = "tls.ca")]
    ca: Option<PathBuf>,
    #[batch_property(name = "tls.certificate")]
    certificate: Option<PathBuf>,
    #[batch_property(name = "tls.key")]
    key: Option<PathBuf>,
    #[batch_property(name = "timeout", value = "30s")]
    timeout: Duration,
}

/// The property `servers`.
#[derive(Clone)]
struct Servers(Vec<ServerAddr>);

impl FromStr for Servers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let servers = text.split(',').map(|server| {
            let server = server.trim();
            // The text is not shown: it may have a password.
            let expected = || {
                "expected `nats://host:4222` or `tls://host:4222`, or several of them separated by commas"
                    .to_owned()
            };
            let scheme = server.split_once("://").map(|(scheme, _)| scheme);
            if !matches!(scheme, Some("nats" | "tls")) {
                return Err(expected());
            }
            let address: ServerAddr = server.parse().map_err(|_| expected())?;
            if address.has_user_pass() {
                return Err(
                    "a URL of `servers` has a user; set the properties `user` and `password`, or `token`"
                        .to_owned(),
                );
            }
            match address.host().is_empty() {
                true => Err(expected()),
                false => Ok(address),
            }
        });
        Ok(Self(servers.collect::<Result<_, _>>()?))
    }
}

impl Servers {
    /// Returns the namespace of the streams and subjects, without users. The first server stands for the cluster.
    fn namespace(&self) -> String {
        let server = self.0.first();
        let place = server.map(|server| match server.host() {
            host if host.contains(':') => format!("nats://[{host}]:{}", server.port()),
            host => format!("nats://{host}:{}", server.port()),
        });
        place.unwrap_or_default()
    }
}

/// A connection. The thread of its runtime belongs to it alone.
pub(super) struct Server {
    runtime: Runtime,
    client: Client,
    pub(super) jetstream: Context,
    timeout: time::Duration,
    /// The number of connections that were lost.
    lost: Arc<AtomicU64>,
}

impl NatsConnection {
    /// Connects to a server.
    pub(super) fn connect(&self) -> Result<Server, Fault> {
        let lost = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&lost);
        let options = self
            .options()
            .map_err(Fault::Permanent)?
            .event_callback(move |event| {
                if matches!(event, Event::Disconnected) {
                    counting.fetch_add(1, Ordering::Relaxed);
                }
                ready(())
            });
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        threads
            .worker_threads(1)
            .thread_name("batch-items-nats")
            .enable_all();
        let runtime = threads
            .build()
            .map_err(|error| Fault::Permanent(error.to_string()))?;
        let connected = runtime.block_on(options.connect(self.servers.0.as_slice()));
        let client = connected.map_err(|error| Fault::Permanent(self.explained(&error)))?;
        // It starts a task.
        let entered = runtime.enter();
        let jetstream = jetstream::ContextBuilder::new()
            .timeout(TIMEOUT)
            .build(client.clone());
        drop(entered);
        Ok(Server {
            runtime,
            client,
            jetstream,
            timeout: self.timeout.get(),
            lost,
        })
    }

    /// Returns the options of a connection. Reads the files that the properties name.
    fn options(&self) -> Result<ConnectOptions, String> {
        let mut options = ConnectOptions::new()
            .name("batch-items")
            .connection_timeout(TIMEOUT);
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => {
                options = options.user_and_password(user.clone(), password.clone());
            }
            (None, None) => {}
            _ => return Err("`user` and `password` are set together, or not at all".to_owned()),
        }
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &self.nkey {
            options = options.nkey(read("nkey", path)?.trim().to_owned());
        }
        if let Some(path) = &self.credentials {
            let read = read("credentials", path)?;
            options = options
                .credentials(&read)
                .map_err(|error| unreadable("credentials", path, &error))?;
        }
        for (name, path) in [
            ("tls.ca", &self.ca),
            ("tls.certificate", &self.certificate),
            ("tls.key", &self.key),
        ] {
            // The client does not name the file.
            path.as_ref().map(|path| read(name, path)).transpose()?;
        }
        if let Some(path) = &self.ca {
            options = options.add_root_certificates(path.clone());
        }
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                options = options.add_client_certificate(certificate.clone(), key.clone());
            }
            (None, None) => {}
            _ => return Err("`tls.certificate` and `tls.key` are set together, or not at all".to_owned()),
        }
        Ok(options)
    }

    /// Returns the dataset that a stream or subject is.
    pub(super) fn dataset(&self, name: &str) -> DatasetName {
        (self.servers.namespace(), name.to_owned())
    }

    /// Returns the servers, for messages.
    pub(super) fn shown(&self) -> String {
        let servers = self.servers.0.iter().map(|server| redact(server.as_url_str()));
        servers.collect::<Vec<_>>().join(", ")
    }

    /// Explains why a connection failed, and what to do.
    fn explained(&self, error: &async_nats::ConnectError) -> String {
        let remedy = match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                "check `user` and `password`, `token`, or the file of `credentials` or `nkey`"
            }
            ConnectErrorKind::Tls => "check the scheme, `nats` or `tls`, and `tls.ca`",
            ConnectErrorKind::Dns => "check the name of the host",
            _ => "check that a server runs at this address",
        };
        format!("cannot connect: {error}; {remedy}")
    }
}

fn read(property: &str, path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| unreadable(property, path, &error))
}

fn unreadable(property: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot read `{}` of `{property}`: {error}", path.display())
}

impl Server {
    /// Runs a future of the client to its end on the calling thread.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Runs a future of the client for a short time; `None` if it takes longer.
    pub(super) fn poll<F: Future>(&self, future: F, time: time::Duration) -> Option<F::Output> {
        let limited = async { tokio::time::timeout(time, future).await };
        self.runtime.block_on(limited).ok()
    }

    /// Waits for the result of a future, unless the step has to stop.
    pub(super) fn wait_or_stop<F: Future>(&self, future: F, waiting: &Waiting) -> Result<F::Output, Fault> {
        let mut future = std::pin::pin!(future);
        loop {
            if let Some(output) = self.poll(&mut future, POLL) {
                return Ok(output);
            }
            if waiting.is_stopping() {
                return Err(Fault::Stopped);
            }
        }
    }

    /// Returns whether the server can be reached.
    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Returns the number of the current connection.
    pub(super) fn connection(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Makes attempts at a call until it succeeds, or fails in a way that would repeat itself.
    pub(super) fn attempt<T>(
        &self,
        waiting: &Waiting,
        mut call: impl FnMut() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut attempts = Attempts::new(self.timeout);
        loop {
            match call() {
                Err(Fault::Transient(problem)) => attempts.wait(&problem, waiting)?,
                result => return result,
            }
        }
    }
}

/// The client is not used any more, so nothing waits for its tasks.
pub(super) fn close(server: Option<Server>) {
    if let Some(server) = server {
        server.runtime.shutdown_background();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: LIN-02
    #[test]
    fn the_first_server_is_the_namespace() {
        for (servers, namespace) in [
            ("nats://a:4223, nats://b", "nats://a:4223"),
            ("tls://a", "nats://a:4222"),
            ("nats://[::1]:1", "nats://[::1]:1"),
        ] {
            assert_eq!(servers.parse::<Servers>().unwrap().namespace(), namespace);
        }
    }

    #[test]
    fn servers_are_urls() {
        let servers: Servers = "nats://a:4222, tls://b".parse().unwrap();
        assert_eq!(servers.0.len(), 2);
        for text in [
            "",
            "a:4222",
            "http://a",
            "nats://",
            "nats://a,",
            "ann:secret@a",
            "nats://ann:secret@a:port",
        ] {
            let error = text.parse::<Servers>().err().unwrap();
            assert!(error.starts_with("expected `nats://host:4222`"), "{text}");
            assert!(!error.contains("secret"), "{error}");
        }
        // The client would ignore them.
        for text in ["nats://ann:secret@a", "nats://secret@a"] {
            let error = text.parse::<Servers>().err().unwrap();
            assert!(error.contains("set the properties `user`"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
