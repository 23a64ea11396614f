//! Section 5.5.2: logical transactions around partitions and splits.

use batch_tests::stage::Stage;
use insta::assert_snapshot;

use crate::artifacts::{Gate, calls, job, restart_with, started, story};
use crate::faults::{lines, make_table};
use crate::parallel::{ONE_THREAD, in_turn, partition_of, properties, sorted_tree};
use crate::sequence::{done, flow, run_with, split};

/// Returns two partitions with all parallel roles, one after the other.
fn everything() -> String {
    let around = r#"|<algorithm ref="Planner"/><logicalTX ref="Unit"/><collector ref="Send"/><analyzer ref="Receive"/>"#;
    in_turn(around)
}

/// The order of all calls of a successful step; the transaction has one instance, on the thread of the step.
///
/// Spec: LTX-01, LTX-04, LTX-06, LTX-07, LTX-08, LTX-17, LTX-18, LTX-19, LTX-20, PART-20, D-46
#[test]
fn the_order_of_a_commit() {
    assert_snapshot!(run_with(&everything(), [("parts", "a,b")]), @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED a DONE
      step all:2 COMPLETED b DONE
    tx begin · plan · process a · collect a 1 at all · data a 1 at all · status a DONE · process b
    collect b 1 at all · data b 1 at all · status b DONE · tx before completion
    tx after 2 calls COMMIT
    ");
}

/// A logical transaction is no database transaction: each chunk is committed by itself, and a rollback leaves to
/// `#[logical_tx_rollback]` what becomes of it.
///
/// Spec: LTX-06, LTX-09
#[test]
fn no_resource_is_enlisted() {
    let items = properties("items.1=4; items.2=5");
    let partition = partition_of(&format!("instances=\"2\"|{items}<logicalTX ref=\"Unit\"/>"));
    let stage = Stage::new(&job(&format!(
        r#"{ONE_THREAD}<step id="copy">
             <chunk reader="Numbers" processor="Labels" writer="TableLines" commit-interval="2"/>{partition}
           </step>"#
    )));
    make_table(&stage);
    stage.start("job", [("fail", "read 5")]);
    assert_snapshot!(calls(&stage, &["tx"]), @"tx begin · tx rollback · tx after 2 calls ROLLBACK");
    assert_eq!(lines(&stage), "n1 n2 n3 n4 n1 n2 n3 n4");
}

/// The events that cause a rollback; the step then fails.
///
/// Spec: LTX-09, LTX-11, LTX-12, LTX-13, LTX-14, LTX-15, LTX-19, LTX-21, SUBJOB-16
#[test]
fn the_reasons_of_a_rollback() {
    let mut text = String::new();
    for fail in [
        "process b",
        "plan",
        "tx begin",
        "tx before completion",
        "collect a 1 at all",
        "data a 1 at all",
        "status b DONE",
    ] {
        let (stage, execution) = started(&everything(), [("parts", "a,b"), ("fail", fail)]);
        text += &format!("WHEN {fail} FAILS\n{}\n", story(&stage, execution));
    }
    assert_snapshot!(text);
}

/// A stop request rolls back too, when every started subjob has ended.
///
/// Spec: LTX-10, LTX-11, PART-26, PART-28
#[test]
fn a_stop_rolls_back() {
    let partition = properties("name.1=a; name.2=b") + r#"<logicalTX ref="Unit"/>"#;
    let stage = Stage::new(&job(&format!(
        r#"<step id="all"><batchlet ref="Meeting"><properties><property name="then" value="wait"/></properties></batchlet>
           <partition instances="2">{partition}</partition></step>"#
    )));
    let operator = stage.operator();
    let execution = operator.start("job", ()).unwrap();
    let gate = Gate::at(&stage);
    gate.pass("a is here");
    gate.pass("b is here");
    operator.stop(execution).unwrap();
    operator.wait(execution).unwrap();
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job STOPPED
      step all STOPPED
      step all:1 STOPPED MET
      step all:2 STOPPED MET
    ");
    let log = stage.log();
    assert_eq!(log[0], "tx begin");
    // Both were cancelled before.
    assert_eq!(log[3..], ["tx rollback", "tx after 2 calls ROLLBACK"]);
}

/// After a rollback that undid their work all partitions run again with a new plan; without `#[logical_tx_rollback]`
/// only the incomplete ones run, with the stored plan.
///
/// Spec: PART-29, PART-30, RESTART-10, D-48, D-50
#[test]
fn a_restart_after_a_rollback() {
    let mut text = String::new();
    for artifact in ["Unit", "Notice"] {
        let stage = Stage::new(&job(&everything().replace("\"Unit\"", &format!("\"{artifact}\""))));
        let with = |parts, fail| [("parts", parts), ("fail", fail), ("sends", "nothing")];
        let failed = stage.start("job", with("a,b", "process b"));
        stage.log();
        let again = restart_with(&stage, failed, with("c,d", ""));
        text += &format!("WITH {artifact}\n{}\n", story(&stage, again));
    }
    assert_snapshot!(text, @r"
    WITH Unit
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED c DONE
      step all:2 COMPLETED d DONE
    tx begin · plan · process c · collect c 1 at all · status c DONE · process d · collect d 1 at all
    status d DONE · tx before completion · tx after 2 calls COMMIT
    WITH Notice
    job job COMPLETED
      step all COMPLETED
      step all:2 COMPLETED b DONE
    status a DONE · process b · collect b 1 at all · status b DONE · notice COMMIT
    ");
}

/// A failed rollback is repeated: each restart calls it first, until it returns.
///
/// Spec: LTX-16, LTX-22, RESTART-16, D-46, D-48
#[test]
fn a_failed_rollback_is_repeated() {
    let stage = Stage::new(&job(&everything()));
    let with = |fail| [("parts", "a"), ("fail", fail), ("sends", "nothing")];
    let first = stage.start("job", with("process a;tx rollback"));
    let mut text = story(&stage, first);
    let second = restart_with(&stage, first, with("tx rollback"));
    text += &format!("\n{}", story(&stage, second));
    let third = restart_with(&stage, second, with(""));
    text += &format!("\n{}", story(&stage, third));
    assert_snapshot!(text);
}

/// A failure after the commit fails the step, and undoes nothing: the restart does not repeat the work.
///
/// Spec: LTX-22, D-46
#[test]
fn a_failure_after_the_commit_undoes_nothing() {
    let stage = Stage::new(&job(&everything()));
    let with = |fail| [("parts", "a"), ("fail", fail), ("sends", "nothing")];
    let first = stage.start("job", with("tx after 2 calls COMMIT"));
    let mut text = story(&stage, first);
    let second = restart_with(&stage, first, with(""));
    text += &format!("\n{}", story(&stage, second));
    assert_snapshot!(text, @r"
    job job FAILED | cannot tx after 2 calls COMMIT
        | thrown by #[logical_tx_after_completion] of logical tx `Unit`
      step all FAILED | the job's message
      step all:1 COMPLETED a DONE
    tx begin · plan · process a · collect a 1 at all · status a DONE · tx before completion
    tx after 2 calls COMMIT
    job job COMPLETED
      step all COMPLETED
    status a DONE
    ");
}

/// Logical transactions also surround the partitions of a flow, and the flows of a split.
///
/// Spec: LTX-02, LTX-03, LTX-04, LTX-05, SPLIT-16, SPLIT-20, FPART-06
#[test]
fn flows_and_splits_have_logical_transactions() {
    let partition = partition_of("instances=\"2\"|<logicalTX ref=\"Unit\"/>");
    let step = done("one");
    let of_flow = ONE_THREAD.to_owned() + &flow("two", "", &(step.clone() + &partition));
    let around = r#"<concurrency><logicalTX ref="Unit"><properties><property name="fail" value="tx before completion"/></properties></logicalTX></concurrency>"#;
    let of_split = split("only", "", &(flow("left", "", &step) + around));
    let mut text = String::new();
    for elements in [of_flow, of_split] {
        let (stage, execution) = started(&elements, ());
        text += &format!("{}\n", story(&stage, execution));
        let fails = stage.start("job", [("fail", "process one")]);
        text += &format!("{}\n", story(&stage, fails));
    }
    assert_snapshot!(text);
}

/// A rollback also undoes inner elements: inner partitions are planned and run again.
///
/// Spec: LTX-02, FPART-07, RESTART-10, D-48
#[test]
fn an_outer_rollback_undoes_inner_partitions() {
    let inner = partition_of(
        r#"|<algorithm ref="Planner"><properties><property name="parts" value="${inner}"/></properties></algorithm>"#,
    );
    let one = format!(r#"<step id="one" next="two"><batchlet ref="Part"/>{inner}</step>"#);
    let outer = partition_of("instances=\"1\"|<logicalTX ref=\"Unit\"/>");
    let parts = flow("parts", "", &(one + &done("two") + &outer));
    let parameters = [("inner", "a,b"), ("fail", "process two")];
    let (stage, failed) = started(&(ONE_THREAD.to_owned() + &parts), parameters);
    stage.log();
    let again = restart_with(&stage, failed, [("inner", "c"), ("fail", "process two")]);
    assert_snapshot!(story(&stage, again), @r"
    job job FAILED | cannot process two | thrown by #[process] of batchlet `Task`
        | in partition 1 of `parts`
      step parts:1 FAILED | cannot process two | thrown by #[process] of batchlet `Task`
      step parts:1/one COMPLETED
      step parts:1/one:1 COMPLETED c DONE
      step parts:1/two FAILED | cannot process two | thrown by #[process] of batchlet `Task`
    tx begin · plan · process c · begin two · process two · end two · tx rollback
    tx after 2 calls ROLLBACK
    ");
}

/// The flows of a split whose work was undone run again, including complete ones.
///
/// Spec: LTX-03, SPLIT-16, RESTART-10, D-48
#[test]
fn the_flows_of_a_split_that_was_rolled_back_run_again() {
    let flows = flow("left", "next=\"right\"", &done("one"))
        + &flow("right", "", &done("two"))
        + r#"<concurrency><logicalTX ref="Unit"/></concurrency>"#;
    let (stage, failed) = started(&split("both", "", &flows), [("fail", "process two")]);
    stage.log();
    let again = restart_with(&stage, failed, [("fail", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step one COMPLETED DONE
      step two COMPLETED DONE
    tx begin · begin one · process one · end one · begin two · process two · end two
    tx before completion · tx after 2 calls COMMIT
    ");
}
