//! 4.2.1.4 and 5.1.1.4: checkpoints that an algorithm decides.

use insta::assert_snapshot;

use super::faults::{RULES, faulty, listener, run};

const CUSTOM: &str = "checkpoint-policy=\"custom\" commit-interval=\"1\"";

fn every(count: u32) -> String {
    format!(
        r#"<checkpoint-algorithm ref="Every"><properties><property name="every" value="{count}"/></properties></checkpoint-algorithm>{RULES}"#
    )
}

/// The algorithm is called after each call of the processor, even if that filters or fails, and not after a skipped
/// read; if it returns true, the buffered items are written and the checkpoint is taken before the next read. Its begin
/// and end surround the terminal interval as well; the timeout is never requested.
///
/// Spec: CHUNK-CKPT-01, CHUNK-CKPT-02, CHUNK-CKPT-03, CHUNK-CKPT-04, CHUNK-CKPT-05, CKALG-01, CKALG-03, CKALG-05,
/// Spec: CKALG-06, CKALG-07, CKALG-08, JSL-CHUNK-09, JSL-CHUNK-14
#[test]
fn the_algorithm_is_called_after_each_item() {
    let stage = faulty("", "Out", CUSTOM, &every(3));
    let faults = "read 2: Skip; process 4: Skip";
    let execution = stage.start("job", [("faults", faults), ("items", "6"), ("filter.every", "3")]);
    assert_snapshot!(super::faults::tree_and_calls(&stage, execution, &[]), @r"
    job job COMPLETED
      step copy COMPLETED read 5 filter 2 write 2 commit 2 read skip 1 process skip 1
    open reader at 0 · open writer at 0 · begin checkpoint · read 1 · process 1 · ready? false
    read 2 !Skip · read 3 · process 3 · ready? false · read 4 · process 4 !Skip · ready? true · write n1
    checkpoint reader at 4 · checkpoint writer · end checkpoint · begin checkpoint · read 5 · process 5
    ready? false · read 6 · process 6 · ready? false · read the end · write n5 · checkpoint reader at 6
    checkpoint writer · end checkpoint · close writer · close reader
    ");
}

/// The write batch is independent of the interval: 10 items by default, or the rest when the checkpoint is due.
///
/// Spec: CHUNK-CKPT-04, CHUNK-LOOP-04, CHUNK-LOOP-07, CHUNK-LOOP-08, JSL-CHUNK-20
#[test]
fn the_write_batch_is_independent_of_the_interval() {
    let mut text = String::new();
    for size in ["", "chunk-size=\"2\"", "chunk-size=\"3\""] {
        let stage = faulty("", "Out", &format!("{CUSTOM} {size}"), &every(3));
        let story = run(&stage, "", "7", &["write", "checkpoint reader"]);
        text += &format!("== {size}\n{story}\n");
    }
    assert_snapshot!(text, @r#"
    == 
    job job COMPLETED
      step copy COMPLETED read 7 write 7 commit 3
    write n1 n2 n3 · checkpoint reader at 3 · write n4 n5 n6 · checkpoint reader at 6 · write n7
    checkpoint reader at 7
    == chunk-size="2"
    job job COMPLETED
      step copy COMPLETED read 7 write 7 commit 3
    write n1 n2 · write n3 · checkpoint reader at 3 · write n4 n5 · write n6 · checkpoint reader at 6
    write n7 · checkpoint reader at 7
    == chunk-size="3"
    job job COMPLETED
      step copy COMPLETED read 7 write 7 commit 3
    write n1 n2 n3 · checkpoint reader at 3 · write n4 n5 n6 · checkpoint reader at 6 · write n7
    checkpoint reader at 7
    "#);
}

/// A rollback for a retry does not start an interval: the algorithm is not called again for items that are written
/// again.
///
/// Spec: CKALG-05, CKALG-06, CHUNK-RETRY-09
#[test]
fn the_algorithm_is_not_called_for_repeated_writes() {
    let stage = faulty("", "Out", CUSTOM, &every(2));
    let words = ["begin", "ready", "write", "end"];
    assert_snapshot!(run(&stage, "has n2: @Retry x1", "3", &words), @r"
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2 rollback 1
    begin checkpoint · ready? false · ready? true · write n1 n2 !@Retry · write n1 · write n2
    end checkpoint · begin checkpoint · ready? false · write n3 · end checkpoint
    ");
}

/// `item-time` needs no artifact of the program.
///
/// Spec: CHUNK-CKPT-06, JSL-CHUNK-12, LOADER-20
#[test]
fn item_time_is_built_in() {
    let algorithm = r#"<checkpoint-algorithm ref="item-time"><properties>
        <property name="item-count" value="3"/><property name="time-limit" value="100000"/></properties></checkpoint-algorithm>"#;
    let stage = faulty(&listener("", "after checkpoint"), "Out", CUSTOM, algorithm);
    assert_snapshot!(run(&stage, "", "7", &["write", "L"]), @r"
    job job COMPLETED
      step copy COMPLETED read 7 write 7 commit 3
    write n1 n2 n3 · L after checkpoint · write n4 n5 n6 · L after checkpoint · write n7
    L after checkpoint
    ");
}

/// An error of the algorithm ends the step at the last checkpoint.
///
/// Spec: CHUNK-LOOP-13, CHUNK-SKIP-14
#[test]
fn an_error_of_the_algorithm_fails_the_step() {
    let stage = faulty("", "Out", CUSTOM, &every(2));
    let mut text = String::new();
    for call in ["begin checkpoint", "ready? true", "end checkpoint"] {
        let story = run(&stage, &format!("{call}: Fatal"), "3", &["begin", "end", "write"]);
        text += &format!("== {call}\n{story}\n");
    }
    assert_snapshot!(text, @r"
    == begin checkpoint
    job job FAILED | Fatal | thrown by #[begin_checkpoint] of checkpoint algorithm `Every`
      step copy FAILED rollback 1 | the job's message
    begin checkpoint !Fatal
    == ready? true
    job job FAILED | Fatal | thrown by #[is_ready_to_checkpoint] of checkpoint algorithm `Every`
      step copy FAILED rollback 1 | the job's message
    begin checkpoint
    == end checkpoint
    job job FAILED | Fatal | thrown by #[end_checkpoint] of checkpoint algorithm `Every`
      step copy FAILED rollback 1 | the job's message
    begin checkpoint · write n1 n2 · end checkpoint !Fatal
    ");
}
