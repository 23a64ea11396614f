//! Retries of the reader and the processor: an extension, the runtime property `batch.retry.input`.

use insta::assert_snapshot;

use super::faults::{RULES, faulty_job, faulty_stage, lines, listener, run};
use crate::artifacts::{assert_contains, calls, refused, tree};

const PROPERTY: &str = r#"<properties><property name="batch.retry.input" value="true"/></properties><chunk"#;

/// Runs the copy of three items with one fault; returns its story and the rows. `listeners` as in `faulty_job`.
fn story(property: bool, listeners: &str, attributes: &str, fault: &str) -> String {
    let attributes = format!("commit-interval=\"2\" {attributes}");
    let mut xml = faulty_job(listeners, "TableOut", &attributes, RULES);
    if property {
        xml = xml.replace("<chunk", PROPERTY);
    }
    let stage = faulty_stage(&xml);
    let execution = stage.start("job", [("faults", fault), ("items", "3")]);
    let words = ["open", "read", "process", "write", "L on"];
    let printed = tree(&stage, execution) + &calls(&stage, &words);
    format!("== {fault}\n{printed}\ntable: {}", lines(&stage))
}

/// In the draft only writes are retried, and the message explains this.
///
/// Spec: CHUNK-RETRY-02, D-09
#[test]
fn without_the_property_only_writes_are_retried() {
    let text = [
        story(false, "", "", "read 2: Retry x1"),
        story(false, "", "", "process 2: Retry x1"),
    ];
    assert_snapshot!(text.join("\n"), @r"
    == read 2: Retry x1
    job job FAILED | Retry | thrown by #[read_item] of item reader `Source`
        | it is retryable, but only writes are retried; set the property `batch.retry.input` of the step to `true` to retry the reader and the processor too
      step copy FAILED rollback 1 | the job's message
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 !Retry
    table: 
    == process 2: Retry x1
    job job FAILED | Retry | thrown by #[process_item] of item processor `Shape` | at item 2 of `copy`
        | it is retryable, but only writes are retried; set the property `batch.retry.input` of the step to `true` to retry the reader and the processor too
      step copy FAILED rollback 1 | the job's message
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Retry
    table:
    ");
}

/// The interval is rolled back and read again, with the same counters as without the failure.
///
/// Spec: D-09, CHUNK-RETRY-04
#[test]
fn a_failed_read_or_process_is_retried_from_the_checkpoint() {
    let text = [
        story(true, "", "", "read 2: Retry x1"),
        story(true, "", "", "process 2: Retry x1"),
        // With listeners of the items, by another way.
        story(true, &listener("", "on process error"), "", "process 2: Retry x2"),
    ];
    assert_snapshot!(text.join("\n"), @r"
    == read 2: Retry x1
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2 rollback 1
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 !Retry · open reader at 0
    open writer at 0 · read 1 · process 1 · read 2 · process 2 · write n1 n2 · read 3 · process 3
    read the end · write n3
    table: n1 n2 n3
    == process 2: Retry x1
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2 rollback 1
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Retry
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 · write n1 n2 · read 3
    process 3 · read the end · write n3
    table: n1 n2 n3
    == process 2: Retry x2
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2 rollback 2
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Retry
    L on process error Retry 2 · open reader at 0 · open writer at 0 · read 1 · process 1 · read 2
    process 2 !Retry · L on process error Retry 2 · open reader at 0 · open writer at 0 · read 1
    process 1 · read 2 · process 2 · write n1 n2 · read 3 · process 3 · read the end · write n3
    table: n1 n2 n3
    ");
}

/// Also for classes without rollback: a reader that has advanced past the item would lose it.
///
/// Spec: D-09
#[test]
fn a_read_is_always_retried_with_a_rollback() {
    assert_snapshot!(story(true, "", "", "read 2: Soft x2"), @r"
    == read 2: Soft x2
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2 rollback 2
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 !Soft · open reader at 0
    open writer at 0 · read 1 · process 1 · read 2 !Soft · open reader at 0 · open writer at 0 · read 1
    process 1 · read 2 · process 2 · write n1 n2 · read 3 · process 3 · read the end · write n3
    table: n1 n2 n3
    ");
}

/// A second failure of an item is skipped if it can be; the limit of retries holds.
///
/// Spec: D-09, CHUNK-RETRY-05, CHUNK-SKIP-09, CHUNK-SKIP-10
#[test]
fn a_retried_item_is_skipped_and_limits_hold() {
    let text = [
        story(true, "", "", "process 2: Both"),
        story(true, "", "retry-limit=\"2\"", "process 2: Retry"),
        story(true, "", "retry-limit=\"2\"", "read 2: Retry"),
    ];
    assert_snapshot!(text.join("\n"), @r"
    == process 2: Both
    job job COMPLETED
      step copy COMPLETED read 3 write 2 commit 2 rollback 1 process skip 1
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Both
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Both · write n1
    read 3 · process 3 · read the end · write n3
    table: n1 n3
    == process 2: Retry
    job job FAILED | Retry | thrown by #[process_item] of item processor `Shape` | at item 2 of `copy`
        | it is retryable, but the retry-limit of 2 is used up
      step copy FAILED rollback 3 | the job's message
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Retry
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Retry
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Retry
    table: 
    == read 2: Retry
    job job FAILED | Retry | thrown by #[read_item] of item reader `Source`
        | it is retryable, but the retry-limit of 2 is used up
      step copy FAILED rollback 3 | the job's message
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 !Retry · open reader at 0
    open writer at 0 · read 1 · process 1 · read 2 !Retry · open reader at 0 · open writer at 0 · read 1
    process 1 · read 2 !Retry
    table:
    ");
}

/// Several bad items in one interval are each retried once, however often the interval is read again.
///
/// Spec: D-09, CHUNK-SKIP-09, CHUNK-SKIP-10
#[test]
fn several_bad_inputs_of_an_interval_are_skipped() {
    let listener = listener("", "on process error");
    let text = [
        story(true, "", "", "process 1: Both; process 2: Both"),
        story(true, "", "", "read 1: Both; read 2: Both"),
        story(true, &listener, "", "process 1: Both; read 2: Both"),
    ];
    assert_snapshot!(text.join("\n"), @r"
    == process 1: Both; process 2: Both
    job job COMPLETED
      step copy COMPLETED read 3 write 1 commit 2 rollback 2 process skip 2
    open reader at 0 · open writer at 0 · read 1 · process 1 !Both · open reader at 0 · open writer at 0
    read 1 · process 1 !Both · read 2 · process 2 !Both · open reader at 0 · open writer at 0 · read 1
    process 1 !Both · read 2 · process 2 !Both · read 3 · process 3 · read the end · write n3
    table: n3
    == read 1: Both; read 2: Both
    job job COMPLETED
      step copy COMPLETED read 1 write 1 commit 1 rollback 2 read skip 2
    open reader at 0 · open writer at 0 · read 1 !Both · open reader at 0 · open writer at 0
    read 1 !Both · read 2 !Both · open reader at 0 · open writer at 0 · read 1 !Both · read 2 !Both
    read 3 · process 3 · read the end · write n3
    table: n3
    == process 1: Both; read 2: Both
    job job COMPLETED
      step copy COMPLETED read 2 write 1 commit 2 rollback 2 read skip 1 process skip 1
    open reader at 0 · open writer at 0 · read 1 · process 1 !Both · L on process error Both 1
    open reader at 0 · open writer at 0 · read 1 · process 1 !Both · L on process error Both 1
    read 2 !Both · open reader at 0 · open writer at 0 · read 1 · process 1 !Both
    L on process error Both 1 · read 2 !Both · read 3 · process 3 · write n3 · read the end
    table: n3
    ");
}

#[test]
fn the_property_is_a_boolean() {
    let xml = faulty_job("", "TableOut", "", RULES).replace("<chunk", &PROPERTY.replace("true", "yes"));
    let error = refused(&faulty_stage(&xml), "job", ());
    assert_contains(&error, "expected `true` or `false`");
}

/// A limit without classes limits nothing; a failure mentions it.
///
/// Spec: JSL-CHUNK-22, JSL-CHUNK-23
#[test]
fn a_limit_without_classes_is_reported() {
    let both = faulty_job("", "TableOut", "skip-limit=\"1\" retry-limit=\"1\"", "");
    let warnings = faulty_stage(&both).operator().check("job", ());
    let codes: Vec<&str> = warnings.unwrap().iter().map(|one| one.code).collect();
    assert_eq!(codes, ["JSL0056", "JSL0056"]);
    for (limit, classes) in [
        ("skip-limit", "skippable-exception-classes"),
        ("retry-limit", "retryable-exception-classes"),
    ] {
        let xml = faulty_job("", "TableOut", &format!("{limit}=\"1\""), "");
        let printed = run(&faulty_stage(&xml), "process 2: Skip", "3", &["L"]);
        let remark = format!("the `{limit}` has no effect without `{classes}`");
        assert_contains(&printed, &remark);
    }
}

/// A step that cannot be pipelined, because of its listener, is one of those whose calls are repeated alone.
///
/// Spec: FAULT-05, D-100
#[test]
fn a_step_that_cannot_be_pipelined_repeats_calls() {
    let listeners = listener("", "on process error");
    let xml = faulty_job(&listeners, "TableOut", "commit-interval=\"2\"", RULES)
        .replace("<chunk", PROPERTY)
        .replacen("<job id=\"job\">", "<job id=\"job\"><properties><property name=\"batch.chunk.pipeline\" value=\"true\"/></properties>", 1);
    assert_contains(&xml, "batch.chunk.pipeline");
    let stage = faulty_stage(&xml);
    let execution = stage.start("job", [("faults", "process 2: Soft x2"), ("items", "3")]);
    assert_contains(
        &stage.tree(execution),
        "read 3 filter 0 write 3 commit 2 rollback 0",
    );
}

/// An error of the processor that keeps the transaction repeats the call alone. What fails again is skipped if possible.
///
/// Spec: FAULT-05, D-09
#[test]
fn a_call_of_the_processor_is_repeated_without_a_rollback() {
    let text = [
        story(true, "", "", "process 2: Soft x2"),
        story(
            true,
            &listener("", "on process error"),
            "",
            "process 2: SoftSkip x2",
        ),
        story(true, "", "retry-limit=\"1\"", "process 2: Soft x2"),
    ];
    assert_snapshot!(text.join("\n"), @r"
    == process 2: Soft x2
    job job COMPLETED
      step copy COMPLETED read 3 write 3 commit 2
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Soft
    process 2 !Soft · process 2 · write n1 n2 · read 3 · process 3 · read the end · write n3
    table: n1 n2 n3
    == process 2: SoftSkip x2
    job job COMPLETED
      step copy COMPLETED read 3 write 2 commit 2 process skip 1
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !SoftSkip
    L on process error SoftSkip 2 · process 2 !SoftSkip · L on process error SoftSkip 2 · write n1
    read 3 · process 3 · read the end · write n3
    table: n1 n3
    == process 2: Soft x2
    job job FAILED | Soft | thrown by #[process_item] of item processor `Shape` | at item 2 of `copy`
        | it is retryable, but the retry-limit of 1 is used up
      step copy FAILED rollback 1 | the job's message
    open reader at 0 · open writer at 0 · read 1 · process 1 · read 2 · process 2 !Soft
    process 2 !Soft
    table:
    ");
}

/// Where the calls are not repeated, the chunk is read again.
///
/// Spec: FAULT-05
#[test]
fn a_pipelined_step_and_several_processors_read_again() {
    for (name, value) in [("batch.chunk.pipeline", "true"), ("batch.chunk.processors", "2")] {
        let property = format!("<properties><property name=\"{name}\" value=\"{value}\"/>");
        let xml = faulty_job("", "TableOut", "commit-interval=\"2\"", RULES);
        let xml = xml.replace("<chunk", PROPERTY).replace("<properties>", &property);
        let stage = faulty_stage(&xml);
        let execution = stage.start("job", [("faults", "process 2: Soft x1"), ("items", "3")]);
        assert_contains(
            &stage.tree(execution),
            "read 3 filter 0 write 3 commit 2 rollback 1",
        );
        assert_eq!(lines(&stage), "n1 n2 n3", "{property}");
    }
}
