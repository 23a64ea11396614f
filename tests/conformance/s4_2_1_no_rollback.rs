//! 4.2.1.3, 4.2.1.2.2: retries with no rollback, without buffered reads, and without a limit.

use std::time::Duration;

use batch_runtime::prelude::*;
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{
    Gate, first_step_execution, impatient, job_execution, restart_with, stopped, tree, wrapped,
};
use super::faults::{
    RETRIES, RULES, faulty, faulty_job, lines, listener, make_table, run, stories, tree_and_calls,
};

/// With no rollback only the item is written again, in the same transaction; items before it stay written.
///
/// Spec: CHUNK-RETRY-10, CHUNK-NORB-01, CHUNK-NORB-02, CHUNK-NORB-04, LISTEN-RETRY-07
#[test]
fn a_no_rollback_exception_has_only_the_item_written_again() {
    let attributes = "commit-interval=\"4\" chunk-size=\"3\"";
    let mut text = stories(&["TableOut"], attributes, "has n2: @Soft x2", "5");
    let (single, attributes) = (["SingleTableOut", "SingleOut"], "commit-interval=\"3\"");
    text += &stories(&single, attributes, "has n2: Soft x1", "3");
    assert_snapshot!(text);
}

/// With no rollback and no known item the same list is written again, and the retry listeners are called for each of
/// its items. If the error is skippable and occurs again, the item is searched for and skipped.
///
/// Spec: CHUNK-RETRY-10, CHUNK-NORB-02, CHUNK-RETRY-14, LISTEN-RETRY-07
#[test]
fn a_no_rollback_exception_of_an_unknown_item_repeats_the_list() {
    let attributes = "commit-interval=\"4\" chunk-size=\"2\"";
    let mut text = stories(&["TableOut", "Out"], attributes, "has n4: Soft x1", "4");
    text += &stories(&["TableOut"], attributes, "has n4: SoftSkip", "4");
    let attributes = format!("{attributes} retry-limit=\"2\"");
    text += &stories(&["TableOut"], &attributes, "has n4: Soft", "4");
    assert_snapshot!(text);
}

/// If the writer names an item of a list that the search has undone, the whole list is written again.
///
/// Spec: CHUNK-NORB-02, CHUNK-RETRY-10
#[test]
fn no_item_of_an_undone_list_is_lost() {
    let faults = "write n1 n2 n3 n4: Skip; has n2: @Soft x1";
    assert_snapshot!(stories(&["TableOut"], "commit-interval=\"4\"", faults, "4"), @r"
    == TableOut: write n1 n2 n3 n4: Skip; has n2: @Soft x1
    job job COMPLETED
      step copy COMPLETED read 4 write 4 commit 2 rollback 1
    process 1 · process 2 · process 3 · process 4 · write n1 n2 n3 n4 !Skip · write n1 n2 !@Soft
    L on retry exception Soft n2 · write n1 · L on retry item Soft n2 · write n2 · write n3 n4
    checkpoint reader at 4 · checkpoint reader at 4
    table: n1 n2 n3 n4
    ");
}

/// The no-rollback list has no effect on an exception that is not retryable. An exclude in it means a rollback.
///
/// Spec: CHUNK-NORB-03, CHUNK-NORB-05
#[test]
fn the_no_rollback_list_is_for_retries() {
    let mut text = stories(&["TableOut"], "commit-interval=\"2\"", "has n2: @NoRollback", "3");
    let rules = r#"<retryable-exception-classes><include class="test.Trouble"/></retryable-exception-classes>
        <no-rollback-exception-classes><include class="test.Trouble"/><exclude class="Both"/></no-rollback-exception-classes>"#;
    for faults in ["has n2: @Retry x1", "has n2: @Both x1"] {
        let stage = faulty("", "TableOut", "commit-interval=\"2\"", rules);
        text += &format!("== {faults}\n{}\n", run(&stage, faults, "2", &["write"]));
    }
    assert_snapshot!(text, @r"
    == TableOut: has n2: @NoRollback
    job job FAILED | NoRollback | thrown by #[write_items] of item writer `TableOut`
        | in the chunk of items 1 to 2 of `copy`
        | its class `conformance::faults::Oops::NoRollback` is neither skippable nor retryable
      step copy FAILED rollback 1 | the job's message
    process 1 · process 2 · write n1 n2 !@NoRollback
    table: 
    == has n2: @Retry x1
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 2
    write n1 n2 !@Retry · write n2
    == has n2: @Both x1
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 2 rollback 1
    write n1 n2 !@Both · write n1 · write n2
    ");
}

/// Without buffered reads nothing is kept: the reader is opened at the last checkpoint, and the interval is read,
/// processed and written again, with the retry listeners before the item.
///
/// Spec: JSL-CHUNK-17, CHUNK-RETRY-07, CHUNK-RETRY-08, CHUNK-RETRY-12, CHUNK-RETRY-14, CHUNK-SKIP-06
#[test]
fn unbuffered_reads_are_read_again() {
    let attributes = "commit-interval=\"3\" buffer-reads=\"false\"";
    let mut text = String::new();
    for faults in [
        "has n5: Retry x1",
        "read 4: Skip; has n6: Both",
        "has n5: Retry x1; open reader at 3: Fatal",
        "has n5: Soft x1",
    ] {
        let stage = faulty(&listener("", RETRIES), "TableOut", attributes, RULES);
        let words = ["open", "read", "write", "L", "checkpoint reader", "close"];
        let story = run(&stage, faults, "7", &words);
        text += &format!("== {faults}\n{story}\ntable: {}\n", lines(&stage));
    }
    assert_snapshot!(text);
}

/// Starts the job, waits for this number of calls of the writer, and stops it.
fn stopped_during_retries(stage: &Stage, faults: &str, writes: usize) -> String {
    let operator = stage.operator();
    let parameters = [("faults", faults), ("items", "4")];
    let execution = operator.start("job", parameters).unwrap();
    let mut log: Vec<String> = Vec::new();
    while log.iter().filter(|call| call.starts_with("write")).count() < writes {
        log.extend(stage.log());
        let status = job_execution(stage, execution).status;
        assert!(!status.is_final(), "{status} before {writes} writes");
    }
    operator.stop(execution).unwrap();
    operator.wait(execution).unwrap();
    log.extend(stage.log());
    let last = log.len() - 2;
    let step = first_step_execution(stage, execution);
    let failed = log.iter().filter(|call| call.contains('!')).count();
    let rollbacks = usize::try_from(step.counters.rollbacks).unwrap();
    let again = restart_with(stage, execution, [("faults", "")]);
    let tree = tree_and_calls(stage, again, &["nothing"]);
    let rolled_back = match rollbacks {
        1 => "once",
        _ if rollbacks == failed => "after each failure",
        _ => "wrongly",
    };
    let (ended, again) = (&log[last..], tree.lines().next().unwrap());
    let first = format!("{}, rolled back {rolled_back}; then {ended:?}", step.status);
    format!("{first}\nrestarted: {again}\ntable: {}\n", lines(stage))
}

/// An endless retry is stopped between two attempts; uncommitted items are read again by the restart.
///
/// Spec: CHUNK-RETRY-16, CHUNK-RETRY-06, CHUNK-RETRY-12
#[test]
fn an_endless_retry_can_be_stopped() {
    let mut text = String::new();
    for (writer, attributes, faults) in [
        ("TableOut", "commit-interval=\"2\"", "has n4: @Retry"),
        ("Out", "commit-interval=\"2\"", "has n4: @Soft"),
        // The retries keep the database locked.
        ("TableOut", "commit-interval=\"2\"", "has n4: @Soft"),
        (
            "TableOut",
            "commit-interval=\"2\" buffer-reads=\"false\"",
            "has n4: Retry",
        ),
    ] {
        let xml = faulty_job("", writer, attributes, RULES);
        let stage = Stage::configured(&xml, |builder| builder.stop_timeout(Duration::from_secs(60)));
        make_table(&stage);
        let stopped = stopped_during_retries(&stage, faults, 8);
        text += &format!("== {writer} {attributes} {faults}\n{stopped}");
    }
    assert_snapshot!(text, @r#"
    == TableOut commit-interval="2" has n4: @Retry
    STOPPED, rolled back after each failure; then ["close writer", "close reader"]
    restarted: job job COMPLETED
    table: n1 n2 n3 n4
    == Out commit-interval="2" has n4: @Soft
    STOPPED, rolled back once; then ["close writer", "close reader"]
    restarted: job job COMPLETED
    table: 
    == TableOut commit-interval="2" has n4: @Soft
    STOPPED, rolled back once; then ["close writer", "close reader"]
    restarted: job job COMPLETED
    table: n1 n2 n3 n4
    == TableOut commit-interval="2" buffer-reads="false" has n4: Retry
    STOPPED, rolled back after each failure; then ["close writer", "close reader"]
    restarted: job job COMPLETED
    table: n1 n2 n3 n4
    "#);
}

/// Waits at an item that is about to be retried.
#[derive(BatchArtifact)]
struct HoldsRetries {
    #[batch_property(name = "folder")]
    folder: String,
}

#[retry_listener]
impl HoldsRetries {
    #[on_retry_exception]
    fn thrown(&mut self, _: &BatchError, _: &String) {
        Gate::of(&self.folder).hold();
    }
}

/// A stop during the failing write ends the step there: nothing is opened, read or committed afterwards.
///
/// Spec: CHUNK-RETRY-16
#[test]
fn a_stop_comes_before_the_retry() {
    let mut text = String::new();
    for attributes in ["", "buffer-reads=\"false\""] {
        let xml = faulty_job("<listener ref=\"HoldsRetries\"/>", "Out", attributes, RULES);
        let stage = impatient(&xml);
        let execution = stopped(&stage, [("faults", "has n1: @Retry")]);
        let log = stage.log();
        let failed = log.iter().position(|call| call.contains('!')).unwrap();
        let rest = wrapped(&log[failed..]);
        text += &format!("== {attributes}\n{}{rest}\n", tree(&stage, execution));
    }
    assert_snapshot!(text, @r#"
    == 
    job job STOPPED
      step copy STOPPED rollback 1
    write n1 n2 n3 n4 !@Retry · close writer · open writer at 0 · close writer · close reader
    == buffer-reads="false"
    job job STOPPED
      step copy STOPPED rollback 1
    write n1 !@Retry · close writer · close reader
    "#);
}

/// A retry that fails is rolled back like every failure: the repository records only commits.
///
/// Spec: CHUNK-RETRY-05, CHUNK-RETRY-12, CHUNK-LOOP-13, CHUNK-LOOP-16
#[test]
fn a_restart_after_used_up_retries() {
    let attributes = "commit-interval=\"2\" retry-limit=\"1\"";
    let stage = faulty(&listener("", RETRIES), "TableOut", attributes, RULES);
    let faults = "has n3: @Retry x3";
    let execution = stage.start("job", [("faults", faults), ("items", "5")]);
    assert_snapshot!(tree_and_calls(&stage, execution, &["open", "write", "L"]), @r"
    job job FAILED | Retry | thrown by #[write_items] of item writer `TableOut`
        | in the chunk of items 3 to 4 of `copy` | it is retryable, but the retry-limit of 1 is used up
      step copy FAILED read 2 write 2 commit 1 rollback 2 | the job's message
    open reader at 0 · open writer at 0 · write n1 n2 · write n3 n4 !@Retry
    L on retry exception Retry n3 · open writer at 2 · L on retry item Retry n3 · write n3 !@Retry
    ");
    assert_eq!(lines(&stage), "n1 n2");
    let again = restart_with(&stage, execution, [("faults", faults)]);
    assert_snapshot!(tree_and_calls(&stage, again, &["open", "write", "L"]), @r"
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2 rollback 1
    open reader at 2 · open writer at 2 · write n3 n4 !@Retry · L on retry exception Retry n3
    open writer at 2 · L on retry item Retry n3 · write n3 · write n4 · write n5
    ");
    assert_eq!(lines(&stage), "n1 n2 n3 n4 n5");
}
