//! The error of a connection.

use std::path::PathBuf;

use thiserror::Error;

/// An error of [`NatsTransport::connect`](crate::NatsTransport::connect). Nothing was started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NatsError {
    /// The address is not a URL of a NATS server, or has an option with a wrong value.
    #[error(
        "invalid address of the NATS server: {problem}; expected nats://[USER:PASSWORD@]HOST[:PORT][?OPTION=VALUE]"
    )]
    Address {
        /// The mistake. Never has a password.
        problem: String,
    },
    /// A file that the address names cannot be read.
    #[error("cannot read {}, which the address of the NATS server names: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The server cannot be reached, or rejects the user.
    #[error("cannot connect to the NATS server {server}: {problem}")]
    Connection {
        /// The server, without user and password.
        server: String,
        /// The cause, and what to do.
        problem: String,
    },
    /// The stream cannot be created or used.
    #[error("cannot use the stream `{stream}` of the NATS server {server}: {problem}")]
    Stream {
        /// The stream.
        stream: String,
        /// The server.
        server: String,
        /// The cause, and what to do.
        problem: String,
    },
    /// The user may not publish or subscribe to what coordinators and workers need.
    #[error(
        "the NATS server {server} does not let this user {action} `{subject}`; permit it to publish to `{prefix}.>`, `$JS.API.>` and \
         `$JS.ACK.>`, and to subscribe to `{prefix}.stop`, `{prefix}.report.*` and `_INBOX.>`"
    )]
    Permission {
        /// `publish to` or `subscribe to`.
        action: &'static str,
        /// The subject.
        subject: String,
        /// The server.
        server: String,
        /// The first part of all subjects.
        prefix: String,
    },
    /// The threads of the connection cannot be started.
    #[error("cannot start the threads of the connection: {0}")]
    Threads(std::io::Error),
}
