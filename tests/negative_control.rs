//! The recovery tests on a runtime with a seeded fault: they have to notice it.
//!
//! Only with the feature `sabotage`: cargo test -p batch-examples -p batch-tests --features batch-tests/sabotage
//! --test negative_control, after the examples have been built with the same features.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use batch_tests::flights;
use batch_tests::kill::{Folder, kill_until_completed, undisturbed};
use batch_tests::random::Random;

/// The negative control of the kill loop: with the data committed apart from the checkpoint it finds a wrong table.
#[test]
fn the_kill_loop_finds_a_checkpoint_outside_the_chunk_transaction() {
    let (folder, mut random) = (Folder::new(), Random::new("negative control"));
    let expected = flights::expected_rows();
    let whole = undisturbed(&folder);
    let found = (1..=30).find_map(|run| {
        kill_until_completed(&folder, &mut random, run, 8, whole, "split-commit");
        flights::verify(&folder.database(), run + 1, &expected).err()
    });
    println!(
        "found: {}",
        found.expect("a doubled or lost flight in 30 instances")
    );
}
