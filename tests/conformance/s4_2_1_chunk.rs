//! 4.2.1: the chunk loop, its intervals and write batches, stop and restart.

use std::time::{Duration, Instant};

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    Gate, assert_completed, calls, chosen, chunk_job, first_step_execution, impatient, job, job_execution,
    restart_with, started, stopped, story, tree, wrapped,
};

/// The whole loop: one item at a time, the batch, reader's then writer's checkpoint, the terminal interval.
///
/// Spec: CHUNK-LOOP-01, CHUNK-LOOP-02, CHUNK-LOOP-03, CHUNK-LOOP-04, CHUNK-LOOP-09, CHUNK-LOOP-10, DOM-07, DOM-21,
/// Spec: DOM-22, DOM-24, DOM-25, DOM-27, DOM-28, DOM-29, JSL-CHUNK-01, JSL-CHUNK-02, JSL-CHUNK-03, JSL-CHUNK-04,
/// Spec: JSL-CHUNK-05, JSL-CHUNK-07, JSL-CHUNK-19, JSL-CHUNK-26, READ-01, READ-02, READ-05, READ-06, READ-07, READ-08,
/// Spec: PROC-01, PROC-02, PROC-03, WRITE-01, WRITE-05, WRITE-06, WRITE-07, WRITE-08
#[test]
fn items_are_read_and_processed_one_by_one_and_written_in_chunks() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="3""#));
    let execution = stage.start("job", [("items", "5")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job COMPLETED
      step copy COMPLETED read 5 write 5 commit 2
    open reader at the beginning · open writer at the beginning · read 1 · process 1 · read 2
    process 2 · read 3 · process 3 · write n1 n2 n3 · checkpoint reader at 3 · checkpoint writer at 3
    read 4 · process 4 · read 5 · process 5 · read the end · write n4 n5 · checkpoint reader at 5
    checkpoint writer at 5 · close writer · close reader
    ");
}

/// N items under `commit-interval=k` make N/k + 1 commits; the terminal interval is committed even if it read nothing.
///
/// Spec: CHUNK-LOOP-09, CHUNK-LOOP-05, DOM-30, JSL-CHUNK-13
#[test]
fn every_interval_is_committed_the_empty_one_too() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="${interval}""#));
    for (items, interval, commits) in [
        ("0", "1", 1),
        ("1", "1", 2),
        ("4", "2", 3),
        ("5", "2", 3),
        ("9", "3", 4),
        ("2", "2147483647", 1),
    ] {
        let execution = stage.start("job", [("items", items), ("interval", interval)]);
        let counters = first_step_execution(&stage, execution).counters;
        assert_eq!(counters.commits, commits, "{items} items, interval {interval}");
        assert_eq!(counters.writes.to_string(), items);
        let log = stage.log();
        let checkpoints = log.iter().filter(|call| call.starts_with("checkpoint reader"));
        assert_eq!(i64::try_from(checkpoints.count()).unwrap(), commits);
        assert!(!log.contains(&"write ".to_owned()), "an empty list was written");
    }
}

/// Interval and write batch are independent: a batch holds `chunk-size` items, or the rest when a checkpoint is due.
///
/// Spec: CHUNK-LOOP-04, CHUNK-LOOP-07, CHUNK-LOOP-08, JSL-CHUNK-07, JSL-CHUNK-13, JSL-CHUNK-18, JSL-CHUNK-19
#[test]
fn chunk_size_and_commit_interval_are_two_units() {
    let batches = |attributes: &str, items: &str| {
        let stage = Stage::new(&chunk_job(attributes));
        stage.start("job", [("items", items)]);
        let log = chosen(&stage, &["write", "checkpoint reader"]);
        let line = |call: &str| match call.strip_prefix("write ") {
            Some(items) => format!("[{items}]"),
            None => "commit".to_owned(),
        };
        let lines: Vec<_> = log.iter().map(|call| line(call)).collect();
        format!("{attributes}: {}\n", lines.join(" "))
    };
    let mut text = String::new();
    text += &batches(r#"commit-interval="4" chunk-size="3""#, "10");
    text += &batches(r#"commit-interval="4" chunk-size="10""#, "9");
    text += &batches(r#"commit-interval="4" chunk-size="2""#, "9");
    text += &batches(r#"commit-interval="4" chunk-size="4""#, "8");
    text += &batches(r#"commit-interval="2""#, "5");
    text += &batches("", "12");
    text += &batches(r#"chunk-size="4""#, "12");
    assert_snapshot!(text, @r#"
    commit-interval="4" chunk-size="3": [n1 n2 n3] [n4] commit [n5 n6 n7] [n8] commit [n9 n10] commit
    commit-interval="4" chunk-size="10": [n1 n2 n3 n4] commit [n5 n6 n7 n8] commit [n9] commit
    commit-interval="4" chunk-size="2": [n1 n2] [n3 n4] commit [n5 n6] [n7 n8] commit [n9] commit
    commit-interval="4" chunk-size="4": [n1 n2 n3 n4] commit [n5 n6 n7 n8] commit commit
    commit-interval="2": [n1 n2] commit [n3 n4] commit [n5] commit
    : [n1 n2 n3 n4 n5 n6 n7 n8 n9 n10] commit [n11 n12] commit
    chunk-size="4": [n1 n2 n3 n4] [n5 n6 n7 n8] [n9 n10] commit [n11 n12] commit
    "#);
}

/// A filtered item is counted as read; the writer is called neither with it nor with an empty list.
///
/// Spec: CHUNK-LOOP-05, CHUNK-LOOP-06, DOM-23, PROC-04
#[test]
fn filtered_items_count_for_the_interval_and_are_not_written() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="4""#));
    let execution = stage.start("job", [("items", "6"), ("filter.every", "2")]);
    assert_snapshot!(format!("{}{}", tree(&stage, execution), calls(&stage, &["write", "checkpoint"])), @r"
    job job COMPLETED
      step copy COMPLETED read 6 filter 3 write 3 commit 2
    write n1 n3 · checkpoint reader at 4 · checkpoint writer at 2 · write n5 · checkpoint reader at 6
    checkpoint writer at 3
    ");
    let execution = stage.start("job", [("items", "6"), ("filter.every", "1")]);
    assert_snapshot!(format!("{}{}", tree(&stage, execution), calls(&stage, &["write", "checkpoint"])), @r"
    job job COMPLETED
      step copy COMPLETED read 6 filter 6 commit 2
    checkpoint reader at 4 · checkpoint writer at 0 · checkpoint reader at 6 · checkpoint writer at 0
    ");
}

/// `chunk-size` counts processed items: filtered ones do not fill the batch.
///
/// Spec: CHUNK-LOOP-04, JSL-CHUNK-18
#[test]
fn filtered_items_do_not_fill_the_batch() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="10" chunk-size="2""#));
    stage.start("job", [("items", "8"), ("filter.every", "2")]);
    assert_snapshot!(calls(&stage, &["process", "write"]), @r"
    process 1 · process 2 · process 3 · write n1 n3 · process 4 · process 5 · process 6 · process 7
    write n5 n7 · process 8
    ");
}

/// Without read buffering, and with a writer that does not buffer, each item is written before the next is read.
///
/// Spec: JSL-CHUNK-15, JSL-CHUNK-17, JSL-CHUNK-21, WRITE-02, WRITE-03, WRITE-04
#[test]
fn unbuffered_items_are_written_one_by_one() {
    let attributes = r#"commit-interval="3" chunk-size="3""#;
    let of = |xml: &str| {
        let stage = Stage::new(xml);
        stage.start("job", [("items", "4")]);
        calls(&stage, &["read", "write", "checkpoint reader"])
    };
    let reads = of(&chunk_job(&format!("{attributes} buffer-reads=\"false\"")));
    let writes = of(&chunk_job(attributes).replace("\"Lines\"", "\"SingleLines\""));
    assert_eq!(reads, writes);
    assert_snapshot!(reads, @r"
    read 1 · write n1 · read 2 · write n2 · read 3 · write n3 · checkpoint reader at 3 · read 4
    write n4 · read the end · checkpoint reader at 4
    ");
}

/// Under the policy `time` only time ends an interval; the batch is then 10 items.
///
/// Spec: JSL-CHUNK-05, JSL-CHUNK-08, JSL-CHUNK-20
#[test]
fn the_time_policy_counts_no_items() {
    let stage = Stage::new(&chunk_job(r#"checkpoint-policy="time" commit-interval="100000""#));
    let execution = stage.start("job", [("items", "23")]);
    assert_snapshot!(format!("{}{}", tree(&stage, execution), calls(&stage, &["write", "checkpoint"])), @r"
    job job COMPLETED
      step copy COMPLETED read 23 write 23 commit 1
    write n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 · write n11 n12 n13 n14 n15 n16 n17 n18 n19 n20
    write n21 n22 n23 · checkpoint reader at 23 · checkpoint writer at 23
    ");
}

/// Takes a second for the first item.
#[item_processor("AfterASecond")]
fn after_a_second(item: &u64, #[batch_property] log: &str) -> Option<String> {
    if *item == 1 {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(1) {
            std::thread::yield_now();
        }
        say(log, "a second is over");
    }
    Some(format!("n{item}"))
}

/// The time is checked after each item: the checkpoint comes before the next read.
///
/// Spec: JSL-CHUNK-08
#[test]
fn the_time_policy_checkpoints_after_the_item_that_took_too_long() {
    let stage = Stage::new(&job(
        r#"<step id="copy"><chunk reader="Numbers" processor="AfterASecond" writer="Lines" checkpoint-policy="time"
            commit-interval="1"/></step>"#,
    ));
    stage.start("job", [("items", "2")]);
    let log = stage.log();
    let first = log.iter().position(|call| call == "read 2").unwrap();
    assert_snapshot!(wrapped(&log[2..first]), @"read 1 · a second is over · write n1 · checkpoint reader at 1 · checkpoint writer at 1");
}

/// A stop finishes the current item, writes the buffered items and commits a checkpoint; a restart resumes after it.
///
/// Spec: CHUNK-LOOP-14, CHUNK-LOOP-15, CHUNK-LOOP-16, STATUS-10, STATUS-11, RESTART-07, JSL-CHUNK-27, READ-09, OP-17
#[test]
fn a_stop_commits_the_current_item() {
    let stage = impatient(&chunk_job(r#"commit-interval="10""#));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let execution = operator.start("job", [("hold.at", "3")]).unwrap();
    gate.pass("held");
    assert!(!operator.stop(execution).unwrap(), "it cannot have stopped yet");
    assert_eq!(job_execution(&stage, execution).status, BatchStatus::Stopping);
    gate.open("go");
    operator.wait(execution).unwrap();
    assert_snapshot!(story(&stage, execution), @r"
    job job STOPPED
      step copy STOPPED read 3 write 3 commit 1
    open reader at the beginning · open writer at the beginning · read 1 · process 1 · read 2
    process 2 · read 3 · process 3 · write n1 n2 n3 · checkpoint reader at 3 · checkpoint writer at 3
    close writer · close reader
    ");
    let again = stage.restart(execution);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 1
    open reader at 3 · open writer at 3 · read 4 · process 4 · read 5 · process 5 · read the end
    write n4 n5 · checkpoint reader at 5 · checkpoint writer at 5 · close writer · close reader
    ");
}

/// The job ends STOPPED even if the stop came with the last item of the last step.
///
/// Spec: CHUNK-LOOP-15, STATUS-26
#[test]
fn a_stop_with_the_last_item_is_a_stop() {
    let stage = impatient(&chunk_job(r#"commit-interval="5""#));
    let execution = stopped(&stage, [("hold.at", "5")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job STOPPED
      step copy STOPPED read 5 write 5 commit 2
    ");
    stage.log();
    let again = stage.restart(execution);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step copy COMPLETED commit 1
    open reader at 5 · open writer at 5 · read the end · checkpoint reader at 5 · checkpoint writer at 5
    close writer · close reader
    ");
}

/// A stop while the reader finds the end also stops the job.
///
/// Spec: CHUNK-LOOP-15, STATUS-11, STATUS-26
#[test]
fn a_stop_at_the_end_of_the_input_is_a_stop() {
    let stage = impatient(&chunk_job(""));
    let execution = stopped(&stage, [("items", "2"), ("hold.at", "3")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job STOPPED
      step copy STOPPED read 2 write 2 commit 1
    open reader at the beginning · open writer at the beginning · read 1 · process 1 · read 2
    process 2 · read the end · write n1 n2 · checkpoint reader at 2 · checkpoint writer at 2
    close writer · close reader
    ");
}

/// A restart delivers item N + 1 first after N committed items; items of a rolled-back interval are read again.
///
/// Spec: CHUNK-LOOP-16, CHUNK-LOOP-13, CHUNK-LOOP-02, JSL-CHUNK-27, RESTART-07, DOM-08, READ-03, READ-09, DOM-26
#[test]
fn a_restart_resumes_after_the_last_commit() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let execution = stage.start("job", [("fail", "read 4")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job FAILED | cannot read 4 | thrown by #[read_item] of item reader `Numbers`
      step copy FAILED read 2 write 2 commit 1 rollback 1 | the job's message
    ");
    stage.log();
    // Failing again before the first commit keeps the checkpoint of the previous execution.
    let again = restart_with(&stage, execution, [("fail", "process 3")]);
    assert_snapshot!(calls(&stage, &["open", "read"]), @"open reader at 2 · open writer at 2 · read 3");
    assert_eq!(job_execution(&stage, again).status, BatchStatus::Failed);
    let third = restart_with(&stage, again, [("fail", "")]);
    assert_snapshot!(story(&stage, third), @r"
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2
    open reader at 2 · open writer at 2 · read 3 · process 3 · read 4 · process 4 · write n3 n4
    checkpoint reader at 4 · checkpoint writer at 4 · read 5 · process 5 · read the end · write n5
    checkpoint reader at 5 · checkpoint writer at 5 · close writer · close reader
    ");
}

/// Spec: JSL-CHUNK-28, JSL-STEP-08, JSL-STEP-10
#[test]
fn a_complete_chunk_that_may_start_again_starts_from_the_beginning() {
    let elements = r#"<step id="copy" next="fails" allow-start-if-complete="true">
             <chunk reader="Numbers" processor="Labels" writer="Lines"/></step>
           <step id="fails"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "process fails"), ("items", "1")]);
    stage.log();
    let again = restart_with(&stage, execution, [("fail", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step copy COMPLETED read 1 write 1 commit 1
      step fails COMPLETED DONE
    open reader at the beginning · open writer at the beginning · read 1 · process 1 · read the end
    write n1 · checkpoint reader at 1 · checkpoint writer at 1 · close writer · close reader
    begin fails · process fails · end fails
    ");
}

/// `record` is a synonym of `item`.
///
/// Spec: JSL-CHUNK-05, JSL-CHUNK-06
#[test]
fn record_is_the_item_policy() {
    let stage = Stage::new(&chunk_job(r#"checkpoint-policy="record" commit-interval="2""#));
    stage.start("job", [("items", "3")]);
    assert_eq!(calls(&stage, &["write"]), "write n1 n2 · write n3");
    let warnings = stage.operator().check("job", [("items", "3")]).unwrap();
    assert!(
        warnings.iter().any(|one| one.to_string().contains("record")),
        "{warnings:?}"
    );
}

/// Spec: JSL-CHUNK-24
#[test]
fn a_checkpoint_timeout_is_accepted() {
    let stage = Stage::new(&chunk_job(r#"checkpoint-timeout="30""#));
    let execution = stage.start("job", [("items", "1")]);
    assert_completed(&stage, execution);
}
