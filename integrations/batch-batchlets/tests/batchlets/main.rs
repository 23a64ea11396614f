//! The batchlets of this crate in whole jobs: real files, processes, databases and connections.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[cfg(unix)]
mod command;
mod examples;
mod files;
#[cfg(feature = "http")]
mod http;
mod job;
#[cfg(unix)]
mod kill;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod servers;
mod sql;
mod stage;
mod wait;
