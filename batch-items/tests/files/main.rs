//! Readers and writers of files, in jobs as users run them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[cfg(feature = "parquet")]
mod arrow;
mod bad_input;
mod characters;
#[cfg(feature = "parquet")]
mod column_values;
mod compose;
mod delimited;
mod destinations;
mod dirty;
mod disturbance;
mod group_rejects;
mod grouping;
mod happenings;
#[cfg(feature = "object-store")]
mod http_input;
mod names;
mod output;
mod own_format;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_columns;
mod partitions;
mod rejects;
mod restart;
mod round_trips;
mod stage;
mod whole_input;
#[cfg(feature = "xlsx")]
mod xlsx;
mod xml;
