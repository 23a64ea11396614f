//! What the annotations accept, and what the compiler says about what they do not: `ui/pass/*.rs` compile,
//! `ui/<attribute>/<mistake>.rs` fail with exactly the text of their `.stderr`.
//!
//! The texts are those of the pinned toolchain; `TRYBUILD=overwrite cargo test --test ui` writes them anew.

/// Each case names the requirements that it proves.
///
/// Spec: ART-01 to ART-07
#[test]
fn what_is_right_compiles_and_runs() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

/// Each case names the requirements that it proves.
///
/// Spec: ART-01 to ART-07
#[test]
fn what_is_wrong_is_told() {
    // Without a case that runs, all are compiled at once: that takes a tenth of the time.
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
        "decider",
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
        "step_listener",
        "sub_job_analyzer",
        "sub_job_collector",
    ] {
        cases.compile_fail(format!("ui/{attribute}/*.rs"));
    }
}
