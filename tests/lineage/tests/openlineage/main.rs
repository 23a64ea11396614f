//! OpenLineage events: processes send them to a receiver of the test, which validates them against the published schemas.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod configuration;
mod ends;
mod failures;
mod files;
mod killed;
mod nested;
mod partitions;
mod program;
mod receiver;
mod runs;
mod schema;
mod shown;
