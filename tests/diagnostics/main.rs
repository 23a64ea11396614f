//! The compiler's errors for invalid annotations: `ui/<attribute>/<mistake>.rs` fails with exactly the text of its
//! `.stderr`. Valid annotations are in `annotations`.
//!
//! The texts come from the pinned toolchain; `TRYBUILD=overwrite cargo test-diagnostics` updates them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

/// Each case names the requirements that it proves.
///
/// Spec: ART-01 to ART-07
#[test]
fn every_mistake_has_its_message() {
    // trybuild compiles all cases at once if none of them has to run.
    let cases = trybuild::TestCases::new();
    for attribute in [
        "artifact_attribute",
        "artifact_loader",
        "batch_artifact",
        "batch_context",
        "batch_exception",
        "batch_property",
        "batchlet",
        "checkpoint_algorithm",
        "checkpoint_listener",
        "chunk_listener",
        "decider",
        "embed_jobs",
        "function",
        "generic_impl",
        "item_process_listener",
        "item_processor",
        "item_read_listener",
        "item_reader",
        "item_write_listener",
        "item_writer",
        "job_listener",
        "logical_tx",
        "method_attribute",
        "partition_algorithm",
        "retry_listener",
        "skip_listener",
        "skip_policy",
        "step_listener",
        "sub_job_analyzer",
        "sub_job_collector",
        "type_alias",
    ] {
        cases.compile_fail(format!("ui/{attribute}/*.rs"));
    }
}
