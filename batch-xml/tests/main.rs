//! Job XML from text to the checked model: files of `tests/jsl`, the examples of the draft, and random documents.
#![expect(clippy::unwrap_used, reason = "a test that meets nothing has failed")]

mod artifacts;
mod examples;
mod fuzz_corpus;
mod graph;
mod guide;
mod hostile;
mod inherit;
mod jakarta;
mod jsl;
mod large;
mod oracle;
mod partitions;
mod random;
mod resolve;
mod transitions;
mod write;

#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

/// Returns the number of random cases: `usual`, or `slow` in the slow tier, as `slow::times` of the package `batch-tests`, which depends
/// on this crate.
fn cases(usual: u32, slow: u32) -> u32 {
    match std::env::var("BATCH_TEST_SLOW").as_deref() {
        Ok("1") => slow,
        _ => usual,
    }
}
