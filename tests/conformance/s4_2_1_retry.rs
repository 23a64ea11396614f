//! 4.2.1.2.2: the exceptions that a chunk step retries.

use insta::assert_snapshot;

use super::faults::{RETRIES, RULES, faulty, lines, listener, run, stories};

/// The five steps for a known item: a new transaction, the items before it, the retry listeners, the item, the rest.
/// Everything since the last checkpoint is written again, including earlier calls of the interval; reader and processor
/// are not called again.
///
/// Spec: CHUNK-RETRY-01, CHUNK-RETRY-03, CHUNK-RETRY-07, CHUNK-RETRY-08, CHUNK-RETRY-09, CHUNK-RETRY-11, CHUNK-RETRY-12,
/// Spec: LISTEN-RETRY-01, LISTEN-RETRY-02, LISTEN-RETRY-05, LISTEN-RETRY-06, LISTEN-RETRY-08, JSL-CHUNK-16
#[test]
fn a_retry_writes_the_interval_again() {
    let attributes = "commit-interval=\"7\" chunk-size=\"3\"";
    assert_snapshot!(stories(&["TableOut"], attributes, "has n5: @Retry x1", "8"), @r"
    == TableOut: has n5: @Retry x1
    job job COMPLETED
      step copy COMPLETED read 8 write 8 commit 2 rollback 1
    process 1 · process 2 · process 3 · write n1 n2 n3 · process 4 · process 5 · process 6
    write n4 n5 n6 !@Retry · L on retry exception Retry n5 · write n1 n2 n3 · write n4
    L on retry item Retry n5 · write n5 · write n6 · process 7 · write n7 · checkpoint reader at 7
    process 8 · write n8 · checkpoint reader at 8
    table: n1 n2 n3 n4 n5 n6 n7 n8
    ");
}

/// Empty parts cause no call: before the first item, after the last one, around a single one.
///
/// Spec: CHUNK-RETRY-08, CHUNK-LOOP-05
#[test]
fn empty_parts_cause_no_call() {
    let mut text = String::new();
    for faults in ["has n1: @Retry x1", "has n2: @Retry x1"] {
        text += &stories(&["Out"], "commit-interval=\"2\"", faults, "2");
    }
    text += &stories(
        &["SingleTableOut"],
        "commit-interval=\"3\"",
        "has n2: Retry x1",
        "3",
    );
    assert_snapshot!(text);
}

/// Without a known item the items are written one by one, or in halves if a write can be undone, until one throws: that
/// item is retried. The list itself uses one retry.
///
/// Spec: CHUNK-RETRY-04, CHUNK-RETRY-08, CHUNK-RETRY-12
#[test]
fn an_unknown_item_is_searched() {
    let attributes = "commit-interval=\"6\" chunk-size=\"4\" retry-limit=\"3\"";
    assert_snapshot!(stories(&["TableOut", "Out"], attributes, "has n3: Retry x3", "6"));
}

/// Each repeated write counts; beyond the limit the exception is handled like one that is not retryable: skipped, or
/// the step fails. A limit of zero allows no retry, no limit any number.
///
/// Spec: CHUNK-RETRY-04, CHUNK-RETRY-05, CHUNK-RETRY-06, CHUNK-RETRY-12, CHUNK-RETRY-13, JSL-CHUNK-23
#[test]
fn the_limit_counts_retries_of_the_step() {
    let mut text = String::new();
    for (limit, faults) in [
        ("retry-limit=\"0\"", "has n2: @Retry"),
        ("retry-limit=\"0\"", "has n2: @Both"),
        ("retry-limit=\"2\"", "has n1: @Retry x1; has n4: @Retry x1"),
        ("retry-limit=\"2\"", "has n1: @Retry x2; has n4: @Retry x1"),
        ("retry-limit=\"2\"", "has n1: @Retry x2; has n4: @Both x1"),
        ("", "has n1: @Retry x6"),
    ] {
        let attributes = format!("commit-interval=\"2\" {limit}");
        let stage = faulty("", "TableOut", &attributes, RULES);
        let story = run(&stage, faults, "4", &["nothing"]);
        text += &format!("== {limit} {faults}\n{story}\ntable: {}\n", lines(&stage));
    }
    assert_snapshot!(text);
}

/// Exceptions of the reader and the processor are not retried: they are skipped, or the step fails.
///
/// Spec: CHUNK-RETRY-02
#[test]
fn only_the_writer_is_retried() {
    let mut text = String::new();
    for faults in [
        "read 2: Both x1",
        "process 2: Both x1",
        "read 2: Retry x1",
        "process 2: Retry x1",
    ] {
        let stage = faulty(&listener("", RETRIES), "Out", "", RULES);
        text += &format!("== {faults}\n{}\n", run(&stage, faults, "3", &["process", "L"]));
    }
    assert_snapshot!(text, @r"
    == read 2: Both x1
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 1 read skip 1
    process 1 · L on skip in read Both · process 3
    == process 2: Both x1
    job job COMPLETED
      step copy COMPLETED read 3 write 2 commit 1 process skip 1
    process 1 · process 2 !Both · L on skip in process Both 2 · process 3
    == read 2: Retry x1
    job job FAILED | Retry | thrown by #[read_item] of item reader `Source`
        | it is retryable, but only writes are retried; set the property `batch.retry.input` of the step to `true` to retry the reader and the processor too
      step copy FAILED rollback 1 | the job's message
    process 1
    == process 2: Retry x1
    job job FAILED | Retry | thrown by #[process_item] of item processor `Shape` | at item 2 of `copy`
        | it is retryable, but only writes are retried; set the property `batch.retry.input` of the step to `true` to retry the reader and the processor too
      step copy FAILED rollback 1 | the job's message
    process 1 · process 2 !Retry
    ");
}

/// An exception that is both is retried first, and skipped if the retried item throws it again.
///
/// Spec: CHUNK-RETRY-14, CHUNK-SKIP-11, CHUNK-SKIP-12
#[test]
fn a_retryable_and_skippable_error_is_retried_first() {
    let attributes = "commit-interval=\"3\"";
    let mut text = stories(&["TableOut"], attributes, "has n2: @Both", "3");
    text += &stories(&["TableOut"], attributes, "has n2: Both", "3");
    text += &stories(&["Out"], attributes, "has n2: @Retry x1; has n2: @Both", "3");
    let no_skips = format!("{attributes} skip-limit=\"0\"");
    text += &stories(&["Out"], &no_skips, "has n2: @Both", "3");
    assert_snapshot!(text);
}

/// Other items may fail during a retry: a further retry counts under the same limit; after a skip the first item is
/// retried, with the retry listeners first.
///
/// Spec: CHUNK-RETRY-08, CHUNK-RETRY-13, LISTEN-RETRY-06
#[test]
fn other_items_fail_during_the_retry() {
    let attributes = "commit-interval=\"3\" retry-limit=\"2\"";
    let mut text = String::new();
    // The second write of item 1 belongs to the retry of item 3.
    for faults in [
        "has n3: @Retry x1; write n1 n2: @Retry x1",
        "has n3: @Retry x1; write n1 n2: @Skip x1",
        "has n3: @Retry x1; write n1 n2: Fatal x1",
        "has n2: @Retry x1; write n3: Retry x1",
    ] {
        text += &stories(&["TableOut"], attributes, faults, "3");
    }
    let faults = "write n3: Retry x1; process 9: Skip";
    text += &stories(&["SingleOut"], attributes, faults, "3");
    assert_snapshot!(text);
}
