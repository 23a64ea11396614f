//! Readers and writers of files, in jobs as users run them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod aggregates;
mod bad_input;
mod characters;
mod compose;
mod databases;
mod decisions;
mod delimited;
mod destinations;
mod dirty;
mod disturbance;
mod disturbed_writers;
mod expectations;
mod expressions;
mod group_rejects;
mod grouping;
mod happenings;
#[cfg(feature = "object-store")]
mod http_input;
mod lookup;
mod names;
mod origins;
mod output;
mod own_format;
mod partitions;
mod rejects;
mod restart;
mod round_trips;
mod routing;
mod stage;
mod whole_input;
mod xml;
