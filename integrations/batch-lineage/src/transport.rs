//! Sends an event: a request to a server, or a line of a file.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use batch_runtime::url::redact;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{RootCerts, TlsConfig};

use crate::config::{Server, Target};

/// Where events are sent.
pub(crate) enum Transport {
    Http { agent: Agent, server: Server },
    File(PathBuf),
}

/// Why an event was not sent.
#[derive(Debug)]
pub(crate) struct SendError {
    pub(crate) cause: String,
    /// True if the same request may succeed later.
    pub(crate) is_transient: bool,
}

impl Transport {
    pub(crate) fn new(target: Target) -> Self {
        let server = match target {
            Target::File(path) => return Self::File(path),
            Target::Http(server) => server,
        };
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let config = Agent::config_builder()
            .timeout_global(Some(server.timeout))
            .http_status_as_error(false)
            // The key is for this server only.
            .max_redirects(0)
            .user_agent(concat!("batch-lineage/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build());
        Self::Http {
            agent: config.build().new_agent(),
            server,
        }
    }

    pub(crate) fn send(&self, event: &str) -> Result<(), SendError> {
        match self {
            Self::File(path) => append(path, event).map_err(|error| SendError {
                cause: error.to_string(),
                is_transient: false,
            }),
            Self::Http { agent, server } => post(agent, server, event),
        }
    }

    /// Returns the variable that sets the destination of events.
    pub(crate) fn variable(&self) -> &'static str {
        match self {
            Self::Http { .. } => "OPENLINEAGE_URL",
            Self::File(_) => "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH",
        }
    }
}

fn append(path: &PathBuf, event: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // In one piece: other processes may write to it.
    file.write_all(format!("{event}\n").as_bytes())
}

fn post(agent: &Agent, server: &Server, event: &str) -> Result<(), SendError> {
    let mut request = agent
        .post(server.url.clone())
        .header("Content-Type", "application/json");
    if let Some(authorization) = &server.authorization {
        request = request.header("Authorization", authorization.clone());
    }
    let response = request.send(event).map_err(|error| SendError {
        cause: error.to_string(),
        is_transient: true,
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    Err(SendError {
        cause: format!("it responds {status}"),
        is_transient: status.is_server_error()
            || matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
            ),
    })
}

/// Shows the place without user, password and query, which may be secret.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { server, .. } => f.write_str(&redact(&server.url.to_string())),
            Self::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}
