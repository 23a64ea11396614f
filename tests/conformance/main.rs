//! The requirements of the catalogue for a running job, by section of the draft.
//!
//! A test names its requirements in the lines `Spec:` above it. Snapshots show the calls of artifacts in order and the
//! state of the repository afterwards: first the tree of the execution, then the log of all calls.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod artifacts;
mod chunk_model;
mod delivery;
mod embedded;
mod fault_properties;
mod faults;
mod get_runtime;
mod in_memory;
mod jakarta;
mod jakarta_checks;
mod jakarta_end;
mod jakarta_partitions;
mod jakarta_retry;
mod job_data;
mod last_chunk;
mod left_out;
mod limits;
mod observers;
mod parallel;
#[cfg(target_os = "linux")]
mod resources;
mod restart;
mod s3_domain;
mod s4_1_job;
mod s4_2_1_chunk;
mod s4_2_1_custom_checkpoint;
mod s4_2_1_exceptions;
mod s4_2_1_failures;
mod s4_2_1_no_rollback;
mod s4_2_1_pipeline;
mod s4_2_1_processors;
mod s4_2_1_retry;
mod s4_2_1_retry_input;
mod s4_2_1_retry_listeners;
mod s4_2_1_skip;
mod s4_2_2_batchlet;
mod s4_2_5_sequence;
mod s4_2_6_partition;
mod s4_2_6_restart;
mod s4_2_step;
mod s4_3_1_partitioned_flow;
mod s4_3_flow;
mod s4_4_split;
mod s4_5_status;
mod s4_6_decision;
mod s4_8_inheritance;
mod s5_1_artifacts;
mod s5_1_writer_position;
mod s5_2_item_listeners;
mod s5_2_listeners;
mod s5_3_nested_artifacts;
mod s5_3_properties;
mod s5_4_contexts;
mod s5_5_logical_tx;
mod s5_5_logical_tx_restart;
mod s5_5_subjobs;
mod s5_7_batch_xml;
mod s5_7_check;
mod s5_7_loader;
mod s5_7_preferred_loader;
mod s6_4_job_path;
mod s6_8_operator;
mod sequence;
mod totals;
mod traces;
mod turns;
mod warnings;
