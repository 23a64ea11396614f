//! Traces, metrics and logs over OTLP: processes send them to a receiver of the test, which decodes them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod configuration;
mod failures;
mod metrics_and_logs;
mod program;
mod prometheus;
mod receiver;
mod traces;
mod tree;
mod workers;
