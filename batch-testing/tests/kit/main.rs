//! Tests of the test kit.
#![allow(clippy::unwrap_used, reason = "tests")]

mod artifact_tests;
mod counter;
mod fixture_tests;
mod job_tests;
mod panics;
mod sweeps;
