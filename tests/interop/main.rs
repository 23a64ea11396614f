//! One repository, this runtime and the real Spring Batch: each program reads, stops and resumes the other's jobs.
//!
//! Spring Batch 4.3, 5 or 6 runs in a separate JVM (`interop/src`), built by Maven. Jobs of the same name have the same
//! steps in both programs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod artifacts;
mod continuing;
mod data;
mod layouts;
mod reading;
mod shared;
mod spring;
mod stopping;
mod values;
mod versions;
mod zones;
