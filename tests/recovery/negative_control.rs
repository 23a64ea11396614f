//! The recovery tests on a runtime with a planted fault: they must detect it.
//!
//! Debug builds have the faults, which `BATCH_FAILPOINTS` enables. `cargo test-failpoints` runs these tests.

use batch_tests::flights;
use batch_tests::kill::{FLIGHTS, Folder, Killer, PARTITIONS_WITHOUT_TRANSACTION};
use batch_tests::partitions::{Input, write_job_without_transaction};
use batch_tests::random::Random;
#[cfg(unix)]
use batch_tests::suspended::taken_over_at;
#[cfg(unix)]
use batch_tests::sweep::{CHUNKS, Fault, PARTITIONS, PLAIN_PIPELINE, Raised, Shape, Sweep};

/// The negative control of the kill loop: with the data committed apart from the checkpoint it finds wrong rows.
#[test]
fn the_kill_loop_finds_a_checkpoint_outside_the_chunk_transaction() {
    let folder = Folder::new();
    let expected = flights::expected_rows();
    let mut killer =
        Killer::new(&folder, FLIGHTS, Random::new("negative control")).with_fault("split-commit");
    let found = (1..=10).find_map(|run| {
        killer.until_completed(run, 8);
        flights::verify(&folder.database(), run + 1, &expected).err()
    });
    println!(
        "found: {}",
        found.expect("a doubled or lost flight in 10 instances")
    );
}

/// The same for partitions: the rows of a partition no longer match its checkpoint.
#[test]
fn the_kill_loop_of_partitions_finds_a_checkpoint_outside_the_chunk_transaction() {
    let folder = Folder::new();
    let input = Input::write(folder.path());
    write_job_without_transaction(folder.path());
    let random = Random::new("negative control of partitions");
    let mut killer = Killer::new(&folder, PARTITIONS_WITHOUT_TRANSACTION, random).with_fault("split-commit");
    let found = (1..=10).find_map(|run| {
        killer.until_completed(run, 8);
        input.verify_checkpoints(&folder.database(), run + 1).err()
    });
    println!(
        "found: {}",
        found.expect("a partition that is wrong in 10 instances")
    );
}

/// The errors that the sweep finds when the data is committed before the checkpoint.
#[cfg(unix)]
fn sweep_with_a_split_commit(shape: Shape, fault: Fault, raised: Raised) {
    let sweep = Sweep::new(env!("CARGO_BIN_EXE_sweeping"), shape).with("BATCH_FAILPOINTS", "split-commit");
    let found = sweep.strike_everywhere(fault, raised);
    let problem = found.expect_err("a fault between data and checkpoint");
    assert!(problem.contains("the rows: "), "{fault:?} {raised:?}: {problem}");
    println!("found: {}", problem.lines().next().unwrap_or_default());
}

/// Every fault of the sweep reaches the gap between data and checkpoint, and the rows show it.
#[test]
#[cfg(unix)]
fn the_sweep_finds_a_checkpoint_outside_the_chunk_transaction() {
    for fault in [Fault::Kill, Fault::Panic, Fault::Once, Fault::ForEver] {
        sweep_with_a_split_commit(CHUNKS, fault, Raised::InStatement);
    }
    for fault in [Fault::Once, Fault::ForEver] {
        sweep_with_a_split_commit(CHUNKS, fault, Raised::InCommit);
        sweep_with_a_split_commit(PARTITIONS, fault, Raised::InStatement);
    }
}

/// In a pipeline the checkpoint belongs to the chunk that is written, not of the one that is read ahead, and the data of a chunk
/// is not written before the commit of the one before.
#[test]
#[cfg(unix)]
fn the_sweep_finds_a_checkpoint_of_the_chunk_that_is_read_ahead() {
    sweep_with_a_split_commit(PLAIN_PIPELINE, Fault::Kill, Raised::InStatement);
    let sweep = Sweep::new(env!("CARGO_BIN_EXE_sweeping"), PLAIN_PIPELINE)
        .with("BATCH_FAILPOINTS", "late-checkpoint");
    let found = sweep.strike_everywhere(Fault::Kill, Raised::InStatement);
    let problem = found.expect_err("a checkpoint that is a chunk too late");
    assert!(problem.contains("the rows: "), "{problem}");
}

/// Without the fence a process that was taken over continues to write, which the database's rules reject.
#[test]
#[cfg(unix)]
fn the_test_of_a_suspended_process_finds_a_checkpoint_without_a_fence() {
    for number in ["2", "7"] {
        let sweep = Sweep::new(env!("CARGO_BIN_EXE_sweeping"), CHUNKS).with("BATCH_FAILPOINTS", "no-fence");
        let problem =
            taken_over_at(sweep, number).expect_err("a checkpoint of a process that was taken over");
        assert!(
            problem.contains("an ended execution was changed"),
            "{number}: {problem}"
        );
    }
}
