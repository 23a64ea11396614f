//! 4.2.1.2.1: the exceptions that a chunk step skips.

use insta::assert_snapshot;

use super::artifacts::{
    assert_contains, assert_failed, chosen, first_step_execution, job_execution, restart_with,
};
use super::faults::{
    RULES, faulty, faulty_job, faulty_stage, lines, listener, run, tree_and_calls, with_job_listeners,
};
use super::s4_2_6_restart::restart_edited;

/// Classes that are only skippable.
const SKIPS: &str = "on skip";

/// Read, process and write skips share one limit; one more fails the step, and no skip listener is called for it. A
/// limit of zero allows no skip, no limit any number.
///
/// Spec: CHUNK-SKIP-01, CHUNK-SKIP-02, CHUNK-SKIP-03, CHUNK-SKIP-06, CHUNK-SKIP-07, CHUNK-SKIP-08, LISTEN-SKIP-05,
/// Spec: JSL-CHUNK-22
#[test]
fn one_limit_for_all_skips() {
    let mut text = String::new();
    for limit in [r#"skip-limit="0""#, r#"skip-limit="2""#, r#"skip-limit="3""#, ""] {
        let attributes = format!("commit-interval=\"1\" {limit}");
        let stage = faulty(&listener("", SKIPS), "Out", &attributes, RULES);
        let faults = "read 2: Skip; process 4: Skip; has n5: Skip";
        text += &format!("== {limit}\n{}\n", run(&stage, faults, "6", &["L"]));
    }
    assert_snapshot!(text, @r#"
    == skip-limit="0"
    job job FAILED | Skip | thrown by #[read_item] of item reader `Source`
        | it is skippable, but the skip-limit of 0 is used up
      step copy FAILED read 1 write 1 commit 1 rollback 1 | the job's message

    == skip-limit="2"
    job job FAILED | Skip | thrown by #[write_items] of item writer `Out` | at item 5 of `copy`
        | it is skippable, but the skip-limit of 2 is used up
      step copy FAILED read 3 write 2 commit 3 rollback 1 read skip 1 process skip 1 | the job's message
    L on skip in read Skip · L on skip in process Skip 4
    == skip-limit="3"
    job job COMPLETED
      step copy COMPLETED read 5 write 3 commit 6 read skip 1 process skip 1 write skip 1
    L on skip in read Skip · L on skip in process Skip 4 · L on skip in write Skip n5
    == 
    job job COMPLETED
      step copy COMPLETED read 5 write 3 commit 6 read skip 1 process skip 1 write skip 1
    L on skip in read Skip · L on skip in process Skip 4 · L on skip in write Skip n5
    "#);
}

/// A skip in the reader yields no item and does not count for the interval; reading continues. A skip in the processor
/// counts for it.
///
/// Spec: CHUNK-SKIP-09, CHUNK-SKIP-10, CHUNK-LOOP-06, LISTEN-READ-04, LISTEN-SKIP-02, LISTEN-SKIP-03, LISTEN-SKIP-05,
/// Spec: LISTEN-PROC-05, JSL-STEPLIS-02
#[test]
fn reading_continues_after_a_skip() {
    let stage = faulty(&listener("", ""), "Out", "commit-interval=\"2\"", RULES);
    let faults = "read 1: Skip; process 3: Skip";
    assert_snapshot!(run(&stage, faults, "3", &[]), @r#"
    job job COMPLETED
      step copy COMPLETED read 2 write 1 commit 2 read skip 1 process skip 1
    open reader at 0 · open writer at 0 · L before read · read 1 !Skip · L on read error Skip
    L on skip in read Skip · L before read · read 2 · L after read 2 · L before process 2 · process 2
    L after process 2 Some("n2") · L before read · read 3 · L after read 3 · L before process 3
    process 3 !Skip · L on process error Skip 3 · L on skip in process Skip 3 · L before write n2
    write n2 · L after write n2 · L before checkpoint · checkpoint reader at 3 · checkpoint writer
    L after checkpoint · L before read · read the end · L before checkpoint · checkpoint reader at 3
    checkpoint writer · L after checkpoint · close writer · close reader
    "#);
}

/// Without listeners the same items are skipped; the engine then uses another loop.
///
/// Spec: CHUNK-SKIP-09, CHUNK-SKIP-10, CHUNK-SKIP-06, CHUNK-LOOP-06
#[test]
fn skips_need_no_listener() {
    let mut text = String::new();
    for (interval, limit) in [(2, 4), (2, 3), (5, 2)] {
        let attributes = format!("commit-interval=\"{interval}\" skip-limit=\"{limit}\"");
        let faults = "read 1: Skip; process 3: Skip; process 5: Skip; read 6: Skip";
        let [alone, notified] = [String::new(), listener("", SKIPS)].map(|listeners| {
            let stage = faulty(&listeners, "Out", &attributes, RULES);
            let words = ["open", "read", "process", "write", "checkpoint", "close"];
            run(&stage, faults, "6", &words)
        });
        assert_eq!(alone, notified);
        text += &(alone + "\n");
    }
    assert_snapshot!(text);
}

/// The item that the writer names is omitted and the rest is written again, after a rollback.
///
/// Spec: CHUNK-SKIP-11, CHUNK-SKIP-12, LISTEN-SKIP-04
#[test]
fn a_named_item_is_omitted() {
    let attributes = "commit-interval=\"4\" chunk-size=\"2\"";
    let stage = faulty(&listener("", "on"), "TableOut", attributes, RULES);
    let story = run(&stage, "has n3: @Skip", "5", &["write", "L", "checkpoint"]);
    assert_snapshot!(story, @r"
    job job COMPLETED
      step copy COMPLETED read 5 write 4 commit 2 rollback 1 write skip 1
    write n1 n2 · write n3 n4 !@Skip · L on write error Skip n3 n4 · L on skip in write Skip n3
    write n1 n2 · write n4 · checkpoint reader at 4 · checkpoint writer · write n5
    checkpoint reader at 5 · checkpoint writer
    ");
    assert_eq!(lines(&stage), "n1 n2 n4 n5");
}

/// The same without retryable exceptions: skips alone make the engine keep the items of the interval and undo a failed
/// write.
///
/// Spec: CHUNK-SKIP-01, CHUNK-SKIP-11
#[test]
fn a_skip_needs_no_rules_for_retries() {
    let rules = "<skippable-exception-classes><include class=\"Skip\"/></skippable-exception-classes>";
    for (writer, size, bad, left) in [
        ("TableOut", 2, "n3: @Skip", "n1 n2 n4 n5"),
        ("TableOut", 2, "n3: Skip", "n1 n2 n4 n5"),
        ("TableOut", 4, "n2: Skip", "n1 n3 n4 n5"),
        ("SingleTableOut", 2, "n3: Skip", "n1 n2 n4 n5"),
    ] {
        let attributes = format!("commit-interval=\"4\" chunk-size=\"{size}\"");
        let stage = faulty("", writer, &attributes, rules);
        run(&stage, &format!("has {bad}"), "5", &["nothing"]);
        assert_eq!(lines(&stage), left, "{writer} {bad}");
    }
}

/// A list of one item identifies it: it is dropped without a rollback, and its rows are undone if they were written
/// through the chunk transaction.
///
/// Spec: CHUNK-SKIP-11, CHUNK-SKIP-12, LISTEN-SKIP-04
#[test]
fn a_list_of_one_is_dropped_without_a_rollback() {
    let mut text = String::new();
    for writer in ["SingleOut", "SingleTableOut"] {
        let stage = faulty(&listener("", "on"), writer, "commit-interval=\"3\"", RULES);
        text += &run(&stage, "has n2: Skip", "4", &["write", "L", "checkpoint"]);
        text += &format!("\ntable: {}\n", lines(&stage));
    }
    assert_snapshot!(text, @r"
    job job COMPLETED
      step copy COMPLETED read 4 write 3 commit 2 write skip 1
    write n1 · write n2 !Skip · L on write error Skip n2 · L on skip in write Skip n2 · write n3
    checkpoint reader at 3 · checkpoint writer · write n4 · checkpoint reader at 4 · checkpoint writer
    table: 
    job job COMPLETED
      step copy COMPLETED read 4 write 3 commit 2 write skip 1
    write n1 · write n2 !Skip · L on write error Skip n2 · L on skip in write Skip n2 · write n3
    checkpoint reader at 3 · checkpoint writer · write n4 · checkpoint reader at 4 · checkpoint writer
    table: n1 n3 n4
    ");
}

/// If a failed write can be undone, the search halves the list; else it writes item by item, including the earlier ones
/// of the interval. The failed list itself is never reported as skipped.
///
/// Spec: CHUNK-SKIP-11, CHUNK-SKIP-12, LISTEN-SKIP-04, LISTEN-SKIP-05, LISTEN-WRITE-05
#[test]
fn an_unknown_item_is_searched() {
    let mut text = String::new();
    for writer in ["TableOut", "Out"] {
        let attributes = "commit-interval=\"12\" chunk-size=\"8\"";
        let stage = faulty(&listener("", "on skip"), writer, attributes, RULES);
        let faults = "has n3: Skip; has n10: Skip; has n12: Skip";
        let story = run(&stage, faults, "12", &["write", "L"]);
        text += &format!("== {writer}\n{story}\ntable: {}\n", lines(&stage));
    }
    assert_snapshot!(text);
}

/// One bad item anywhere in a chunk of a thousand is found by few calls of the writer, and costs one rollback and no
/// additional commit.
///
/// Spec: CHUNK-SKIP-11, CHUNK-SKIP-12
#[test]
fn a_bad_item_of_a_thousand_is_found_by_few_calls() {
    let stage = faulty("", "TableOut", "commit-interval=\"1000\"", RULES);
    for item in [1, 2, 500, 700, 1000] {
        let class = if item == 700 { "Both" } else { "Skip" };
        let faults = format!("has n{item}: {class}");
        let execution = stage.start("job", [("faults", faults.as_str()), ("items", "1000")]);
        let writes = chosen(&stage, &["write"]).len();
        assert!(writes <= 25, "{writes} calls for item {item}");
        let c = first_step_execution(&stage, execution).counters;
        assert_eq!((c.writes, c.write_skips, c.commits), (999, 1, 2), "item {item}");
        assert!(c.rollbacks <= 2, "{} rollbacks for item {item}", c.rollbacks);
    }
}

/// A writer that accepts only one item at a time, whichever it is, finally gets them one by one.
///
/// Spec: CHUNK-SKIP-11, CHUNK-SKIP-12
#[test]
fn lists_that_fail_without_a_bad_item_end() {
    let stage = faulty("", "TableOut", "commit-interval=\"4\" chunk-size=\"2\"", RULES);
    let faults = "write n1 n2: Skip; write n3 n4: Skip";
    assert_snapshot!(run(&stage, faults, "4", &["write", "checkpoint"]), @r"
    job job COMPLETED
      step copy COMPLETED read 4 write 4 commit 2 rollback 2
    write n1 n2 !Skip · write n1 · write n2 · write n3 n4 !Skip · write n1 n2 !Skip · write n1
    write n2 · write n3 n4 !Skip · write n3 · write n4 · checkpoint reader at 4 · checkpoint writer
    checkpoint reader at 4 · checkpoint writer
    ");
    assert_eq!(lines(&stage), "n1 n2 n3 n4");
}

/// The search ends with the item's own exception, which decides, not the list's.
///
/// Spec: CHUNK-SKIP-05, CHUNK-SKIP-11, CHUNK-EXC-03
#[test]
fn the_error_of_the_found_item_decides() {
    let stage = faulty("", "TableOut", "commit-interval=\"4\"", RULES);
    let mut text = String::new();
    for faults in [
        "write n1 n2 n3 n4: Skip; has n2: Fatal",
        "write n1 n2 n3 n4: Skip; write n1 n2: Panic x1",
        "write n1 n2 n3 n4: Skip x1; write n1 n2: Fatal x1",
        "write n1 n2 n3 n4: Skip; has n2: @Skip",
        // The writer names an item that its list does not contain.
        "has n2: @@Skip",
    ] {
        text += &format!("== {faults}\n{}\n", run(&stage, faults, "4", &["write"]));
    }
    assert_snapshot!(text);
}

/// Skip listeners of the job are called for every chunk step, before the step's.
///
/// Spec: CHUNK-SKIP-13, LISTEN-SKIP-01, LISTEN-SKIP-02, LISTEN-SKIP-03, LISTEN-SKIP-04, JSL-JOBLIS-05, JSL-JOBLIS-06
#[test]
fn skip_listeners_of_the_job_come_first() {
    let listeners = listener("S1", SKIPS) + &listener("S2", SKIPS);
    let xml = faulty_job(&listeners, "Out", "commit-interval=\"2\"", RULES);
    let stage = faulty_stage(&with_job_listeners(
        &xml,
        &(listener("J1", "") + &listener("J2", "")),
    ));
    let faults = "read 1: Skip; process 3: Skip; has n4: @Skip";
    assert_snapshot!(run(&stage, faults, "5", &["J", "S"]), @r"
    job job COMPLETED
      step copy COMPLETED read 4 write 2 commit 3 rollback 1 read skip 1 process skip 1 write skip 1
    J1 on skip in read Skip · J2 on skip in read Skip · S1 on skip in read Skip
    S2 on skip in read Skip · J1 on skip in process Skip 3 · J2 on skip in process Skip 3
    S1 on skip in process Skip 3 · S2 on skip in process Skip 3 · J1 on skip in write Skip n4
    J2 on skip in write Skip n4 · S1 on skip in write Skip n4 · S2 on skip in write Skip n4
    ");
}

/// The error that exceeds the limit may not be the cause of most skips.
///
/// Spec: CHUNK-SKIP-07
#[test]
fn an_exceeded_limit_names_the_cause_of_most_skips() {
    let job = |every: u32| {
        let attributes = format!("commit-interval=\"{every}\" skip-limit=\"2\"");
        let retried = r#"<properties><property name="batch.retry.input" value="true"/></properties><chunk"#;
        faulty_job(&listener("", SKIPS), "Out", &attributes, RULES).replace("<chunk", retried)
    };
    let message = |every: u32, faults: &str| {
        let stage = faulty_stage(&job(every));
        let execution = stage.start("job", [("faults", faults), ("items", "6")]);
        let message = job_execution(&stage, execution).exit_message;
        assert_contains(&message, "the skip-limit of 2 is used up");
        message
    };
    let remark = "; most skips had a different cause, for example: Skip";
    let mostly_another = message(1, "read 1: Skip; process 3: Skip; has n5: SoftSkip");
    assert!(mostly_another.ends_with(remark), "{mostly_another}");
    // The items of a chunk are read again after a retry, and their skips are counted once.
    let repeated = "process 1: Skip; process 2: Retry x3; has n4: SoftSkip; has n5: SoftSkip";
    for (every, faults) in [
        (1, "read 1: Skip; process 3: SoftSkip; has n5: Both"),
        (1, "read 1: Skip; process 3: Skip; has n5: Skip"),
        (3, repeated),
    ] {
        let other = message(every, faults);
        assert!(!other.contains("most skips"), "{faults}\n{other}");
    }
}

/// A restart after a failure resumes after the last commit; earlier skips remain skipped, and the limit still counts them: an
/// interruption must not change how a job ends.
///
/// Spec: CHUNK-SKIP-06, CHUNK-SKIP-07, CHUNK-LOOP-16, CHUNK-LOOP-13, JSL-CHUNK-27, D-95
#[test]
fn a_restart_after_skips_resumes_at_the_right_item() {
    let job = |limit: u32| {
        let attributes = format!("commit-interval=\"2\" skip-limit=\"{limit}\"");
        faulty_job(&listener("", SKIPS), "TableOut", &attributes, RULES)
    };
    let stage = faulty_stage(&job(2));
    let faults = "read 1: Skip; process 2: Skip; has n5: @Skip; has n6: @Skip";
    let execution = stage.start("job", [("faults", faults), ("items", "7")]);
    assert_snapshot!(tree_and_calls(&stage, execution, &["L", "open", "checkpoint"]), @r"
    job job FAILED | Skip | thrown by #[write_items] of item writer `TableOut`
        | in the chunk of items 4 to 5 of `copy` | it is skippable, but the skip-limit of 2 is used up
      step copy FAILED read 2 write 1 commit 1 rollback 1 read skip 1 process skip 1 | the job's message
    open reader at 0 · open writer at 0 · L on skip in read Skip · L on skip in process Skip 2
    checkpoint reader at 3 · checkpoint writer
    ");
    assert_eq!(lines(&stage), "n3");
    let again = restart_with(&stage, execution, [("faults", faults)]);
    let used_up = "it is skippable, but the skip-limit of 2 is used up";
    assert_failed(&stage, again, used_up);
    // Items are counted in the instance.
    let again = restart_with(&stage, again, [("faults", "process 5: Fatal")]);
    assert_failed(&stage, again, "at item 5 of `copy`");
    stage.log();
    // The operator allows more.
    let again = restart_edited(&stage, again, &job(4), [("faults", faults)]);
    assert_snapshot!(tree_and_calls(&stage, again, &["L", "open", "checkpoint"]), @r"
    job job COMPLETED
      step copy COMPLETED read 4 write 2 commit 3 rollback 2 write skip 2
    open reader at 3 · open writer at 1 · L on skip in write Skip n5 · open writer at 1
    checkpoint reader at 5 · checkpoint writer · L on skip in write Skip n6 · open writer at 2
    checkpoint reader at 7 · checkpoint writer · checkpoint reader at 7 · checkpoint writer
    ");
    assert_eq!(lines(&stage), "n3 n4 n7");
}
