//! Notifications: processes send them to a server of the test, which accepts, fails or hangs, and to commands.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod commands;
mod events;
mod failures;
mod kills;
mod program;
mod receiver;
mod settings;
