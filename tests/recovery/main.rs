//! Processes that are killed, that fail at any statement, or that are suspended past their lease, and the restarts
//! after them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[cfg(unix)]
mod dispatch;
#[cfg(target_os = "linux")]
mod full_disk;
mod kills;
mod logical_tx;
#[cfg(all(debug_assertions, feature = "servers"))]
mod negative_control;
mod orders;
mod partitions;
mod sweep;
mod writers;
