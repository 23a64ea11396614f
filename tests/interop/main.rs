//! One repository, this runtime and the real Spring Batch 4.3: what each writes the other reads, stops and resumes.
//!
//! Spring Batch runs in a JVM of its own (`interop/src`), built by Maven. Jobs of the same name have the same steps on both
//! sides.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod artifacts;
mod continuing;
mod reading;
mod shared;
mod spring;
mod stopping;
mod zones;
