//! The artifacts that the jobs of the TCK name, written from their descriptions.
//!
//! An exit status that is not set is `None` here and `null` in Java. Artifacts that append to it append to the word
//! `null`, as the expected exit statuses demand: see [`values::or_null`].

mod array_chunks;
mod basic_chunks;
mod batchlets;
mod chunk_listeners;
mod context_batchlets;
mod deciders;
mod exceptions;
mod fixed_chunks;
mod instances;
pub(crate) mod inventory;
mod item_listeners;
mod listeners;
pub(crate) mod long_running;
mod null_checkpoints;
pub(crate) mod numbers;
mod partition_artifacts;
mod partitions;
mod properties;
mod skip_chunks;
mod skip_listeners;
mod state_machines;
mod timed_chunks;
pub(crate) mod values;
