//! Section 5.5.2: restarts of logical transactions whose process died, and what a rollback discards. These tests write
//! the states; `tests/recovery/logical_tx.rs` kills a process in each of them.

use batch_tests::stage::Stage;
use diesel::prelude::*;
use insta::assert_snapshot;

use crate::artifacts::{job, restart_with, started, story, tree, wrapped};
use crate::parallel::{partitioned, sorted_tree};
use crate::s4_2_6_restart::restart_edited;
use crate::sequence::{done, flow, meeting, split, task};

const UNIT: &str = r#"<concurrency><logicalTX ref="Unit"/></concurrency>"#;

/// Writes the state that a dead process leaves.
fn leave(stage: &Stage, elements: &serde_json::Value) {
    let context = serde_json::json!({
        "@class": "java.util.HashMap",
        "batch.parallel.elements": elements.to_string(),
    });
    let changed = diesel::sql_query("UPDATE BATCH_JOB_EXECUTION_CONTEXT SET SHORT_CONTEXT = ?");
    let changed = changed.bind::<diesel::sql_types::Text, _>(context.to_string());
    assert_eq!(changed.execute(&mut stage.connection()), Ok(1));
}

fn in_state(tx: &str) -> serde_json::Value {
    serde_json::json!({"tx": tx, "plan": null, "planned": 0, "algorithm": null, "since": null})
}

/// Everything was complete but the last call: it is made, and nothing is rolled back. Partitions that run again are in
/// a new transaction.
///
/// Spec: LTX-17, LTX-22, D-48
#[test]
fn a_commit_is_finished() {
    let left = task("one", "allow-start-if-complete=\"true\"", "DONE", "");
    let elements = split("only", "next=\"last\"", &(flow("left", "", &left) + UNIT)) + &done("last");
    let (stage, first) = started(&elements, [("fail", "process last")]);
    leave(&stage, &serde_json::json!({"only": in_state("committed")}));
    stage.log();
    let second = restart_with(&stage, first, [("fail", "process one")]);
    assert_snapshot!(story(&stage, second), @r"
    job job FAILED | cannot process one | thrown by #[process] of batchlet `Task`
      step one FAILED | the job's message
    tx after 0 calls COMMIT · tx begin · begin one · process one · end one · tx rollback
    tx after 3 calls ROLLBACK
    ");
    let third = restart_with(&stage, second, [("fail", "")]);
    assert_snapshot!(story(&stage, third), @r"
    job job COMPLETED
      step one COMPLETED DONE
      step last COMPLETED DONE
    tx begin · begin one · process one · end one · tx before completion · tx after 2 calls COMMIT
    begin last · process last · end last
    ");
}

/// A committed split is not undone by later events, for any result of its artifact.
///
/// Spec: LTX-17, RESTART-11, SPLIT-23
#[test]
fn a_committed_split_is_not_undone() {
    let left = done("one");
    let elements = split("only", "next=\"last\"", &(flow("left", "", &left) + UNIT)) + &done("last");
    let (stage, first) = started(&elements, [("fail", "process last")]);
    stage.log();
    let second = restart_with(&stage, first, [("fail", "tx begin")]);
    assert_snapshot!(story(&stage, second), @r"
    job job COMPLETED
      step last COMPLETED DONE
    begin last · process last · end last
    ");
}

/// Nested transactions: the outer one is rolled back first and starts again, then the inner one. The rollback of the
/// outer one includes the work of the inner one.
///
/// Spec: LTX-22, D-48
#[test]
fn nested_transactions_are_rolled_back_from_the_outside() {
    let unit = |name: &str| {
        format!(
            r#"<logicalTX ref="Named"><properties><property name="name" value="{name}"/></properties></logicalTX>"#
        )
    };
    let inner = partitioned("inner", "", "Part", &format!("instances=\"1\"|{}", unit("inner")));
    let around = format!("<concurrency>{}</concurrency>", unit("outer"));
    let elements = split("outer", "", &(flow("left", "", &inner) + &around));
    let (stage, first) = started(&elements, [("fail", "process nameless")]);
    for state in ["begun", "rolling_back"] {
        let elements = serde_json::json!({"outer": in_state(state), "inner": in_state(state)});
        leave(&stage, &elements);
    }
    stage.log();
    let second = restart_with(&stage, first, [("fail", "")]);
    assert_snapshot!(story(&stage, second), @r"
    job job COMPLETED
      step inner COMPLETED
      step inner:1 COMPLETED nameless DONE
    outer rollback · outer begin · inner rollback · inner begin · process nameless
    ");
}

/// Rolled-back work does not count, but each start of a step does.
///
/// Spec: JSL-STEP-04, D-48
#[test]
fn starts_that_were_rolled_back_count() {
    let one = task("one", "start-limit=\"1\"", "DONE", "");
    let elements = split("only", "", &(flow("left", "", &one) + UNIT));
    let (stage, first) = started(&elements, [("fail", "process one")]);
    let second = restart_with(&stage, first, [("fail", "process one")]);
    let third = restart_with(&stage, second, [("fail", "")]);
    assert_snapshot!(tree(&stage, third), @r"
    job job FAILED
        | step `one` of job `job` was started 2 times in this job instance, as often as its start-limit allows; increase the start-limit in the Job XML to restart it
    ");
}

/// An `end` element within one flow stops the other; the work of both is rolled back, so the job is not complete.
///
/// Spec: LTX-11, STATUS-25, D-46
#[test]
fn rolled_back_work_is_not_complete() {
    let ends = flow("left", "", &meeting("a", "", "b", "end", r#"<end on="a MET"/>"#));
    let waits = flow("right", "", &meeting("b", "", "a", "wait", ""));
    let (stage, first) = started(&split("both", "", &(ends + &waits + UNIT)), ());
    assert_snapshot!(sorted_tree(&stage, first), @r"
    job job FAILED
        | an `end` element within `both` ended the job before everything in it was complete, so its logical transaction was rolled back
      step a COMPLETED a MET
      step b STOPPED b MET
    ");
    assert_snapshot!(wrapped(&stage.log()), @"tx begin · cancel b · tx rollback · tx after 2 calls ROLLBACK");
}

/// An open transaction that is missing in the current XML cannot be rolled back: this is reported, and nothing runs.
///
/// Spec: LTX-22, D-48
#[test]
fn an_open_transaction_needs_its_element() {
    let left = flow("left", "", &done("one"));
    let xml = |around: &str| job(&split("only", "", &(left.clone() + around)));
    let stage = Stage::new(&xml(UNIT));
    let first = stage.start("job", [("fail", "process one")]);
    leave(&stage, &serde_json::json!({"only": in_state("begun")}));
    stage.log();
    let second = restart_edited(&stage, first, &xml(""), [("fail", "")]);
    assert_snapshot!(story(&stage, second), @r"
    job job FAILED
        | the logical transaction of `only` is open, but the Job XML no longer has one there; restart with the previous Job XML to roll it back
    ");
}
