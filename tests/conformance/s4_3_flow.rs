//! Section 4.3: flows.

use insta::assert_snapshot;

use crate::artifacts::{restart_with, started, story};
use crate::sequence::{decision, done, flow, run, run_with, task};

/// A flow runs its steps, and transitions as a whole; it has the statuses of its last step.
///
/// Spec: FLOW-01, FLOW-03, FLOW-06, FLOW-07, FLOW-08, FLOW-11, FLOW-12, FLOW-14, FLOW-18, FLOW-19, SEQ-10, DEC-13, DEC-18, CTX-31, CTX-32
#[test]
fn a_flow_is_a_unit() {
    let inside = task("two", "", "LOADED", r#"<next on="LOADED" to="choose"/>"#)
        + &decision("choose", "HERE", r#"<next on="HERE" to="three"/>"#)
        + &task("three", "", "REPORTED", "")
        + &done("unreached");
    let elements = task("one", "next=\"both\"", "DONE", "")
        + &flow("both", "next=\"after\"", &inside)
        + &decision("after", "GO", r#"<next on="GO" to="last"/>"#)
        + &done("last");
    assert_snapshot!(run(&elements), @r"
    job job COMPLETED GO
      step one COMPLETED DONE
      step two COMPLETED LOADED
      step three COMPLETED REPORTED
      step last COMPLETED DONE
    begin one · process one · end one · begin two · process two · end two
    decide of job after step two COMPLETED LOADED · begin three · process three · end three
    decide of job after flow both COMPLETED REPORTED · begin last · process last · end last
    ");
}

/// Spec: FLOW-15, CTX-08, CTX-12, CTX-33, D-31
#[test]
fn the_exit_status_of_a_flow_may_be_set_inside() {
    let around = r#"<step id="inside"><batchlet ref="Around"/></step>"#;
    let elements = flow("first", "next=\"choose\"", around)
        + &decision("choose", "GO", r#"<next on="GO" to="outside"/>"#)
        + r#"<step id="outside"><batchlet ref="Around"/></step>"#;
    assert_snapshot!(run_with(&elements, [("flow.exit", "AS SET")]), @r"
    job job COMPLETED GO
      step inside COMPLETED SEEN
      step outside COMPLETED SEEN
    inside: job job STARTED (seen before: false), flow first STARTED, split none
    decide of job after flow first COMPLETED AS SET
    outside: job job STARTED (seen before: true), flow none, split none
    ");
}

/// A failure and each terminating element inside a flow end the whole job.
///
/// Spec: FLOW-13, TERM-14, STATUS-16
#[test]
fn a_terminating_element_inside_a_flow_ends_the_job() {
    for (result, fail) in [("BAD", ""), ("GOOD", ""), ("UGLY", ""), ("DONE", "process one")] {
        let transitions = r#"<fail on="BAD"/><end on="GOOD" exit-status="WELL"/><stop on="UGLY"/>"#;
        let inside = task("one", "next=\"two\"", result, transitions) + &done("two");
        let elements = flow("both", "next=\"last\"", &inside) + &done("last");
        let (stage, execution) = started(&elements, [("fail", fail)]);
        let name = format!("flow_ended_by_{}", result.to_lowercase());
        assert_snapshot!(name, story(&stage, execution));
    }
}

/// On restart the completed steps of the flow do not run again, and transition by their recorded exit status.
///
/// Spec: RESTART-05, RESTART-06, RESTART-10, RESTART-12, DEC-19, TERM-11
#[test]
fn a_flow_is_traversed_again_on_restart() {
    let inside = task("one", "", "LOADED", r#"<next on="LOADED" to="choose"/>"#)
        + &decision("choose", "HERE", r#"<next on="HERE" to="two"/>"#)
        + &done("two");
    let elements = flow("both", "next=\"last\"", &inside) + &done("last");
    let (stage, failed) = started(&elements, [("fail", "process two")]);
    stage.log();
    let again = restart_with(&stage, failed, [("fail", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED HERE
      step two COMPLETED DONE
      step last COMPLETED DONE
    decide of job after step one COMPLETED LOADED · begin two · process two · end two · begin last
    process last · end last
    ");
}

/// A stop element inside a flow: the restart position is the flow.
///
/// Spec: TERM-11, D-24
#[test]
fn after_a_stop_inside_a_flow_the_flow_runs_again() {
    let inside = task("two", "next=\"three\"", "DONE", "")
        + r#"<step id="three"><batchlet ref="Task"/><stop on="HALT"/></step>"#;
    let elements =
        task("one", "next=\"both\"", "DONE", "") + &flow("both", "next=\"last\"", &inside) + &done("last");
    let (stage, stopped) = started(&elements, [("result", "HALT")]);
    assert_snapshot!(story(&stage, stopped), @r"
    job job STOPPED
      step one COMPLETED HALT
      step two COMPLETED HALT
      step three STOPPED HALT
    begin one · process one · end one · begin two · process two · end two · begin three · process three
    end three
    ");
    let again = restart_with(&stage, stopped, [("result", "GO")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step three COMPLETED GO
      step last COMPLETED GO
    begin three · process three · end three · begin last · process last · end last
    ");
}
