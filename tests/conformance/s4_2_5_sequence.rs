//! Section 4.2.5: the sequence of steps, and section 4.5.1: elements that end the job.

use insta::assert_snapshot;

use crate::artifacts::{assert_matches, assert_starts, job, restart_with, started, story, tree};
use crate::s4_2_6_restart::restart_edited;
use crate::sequence::{done, run, run_with, task};
use batch_runtime::JobOperatorError;

/// The first element of the document starts; an element that no transition reaches does not run.
///
/// Spec: SEQ-01, SEQ-02, SEQ-03, SEQ-04, SEQ-05, SEQ-06, SEQ-09, SEQ-17, SEQ-20, STATUS-14
#[test]
fn the_exit_status_chooses_the_transition() {
    let transitions = r#"<next on="*" to="two"/><next on="LA*" to="three"/><next on="ON TIME" to="two"/>"#;
    let elements = task("one", "", "LATE", transitions)
        + &done("two")
        + &task("three", "next=\"four\"", "DONE", "")
        + &done("four");
    assert_snapshot!(run(&elements), @r"
    job job COMPLETED
      step one COMPLETED LATE
      step three COMPLETED DONE
      step four COMPLETED DONE
    begin one · process one · end one · begin three · process three · end three · begin four
    process four · end four
    ");
}

/// Spec: SEQ-21, D-21
#[test]
fn a_status_that_no_next_element_matches_fails_the_job() {
    let transitions = r#"<next on="LATE" to="two"/><end on="NEVER"/>"#;
    let elements = task("one", "", "EARLY", transitions) + &done("two");
    assert_snapshot!(run(&elements), @r"
    job job FAILED | the exit status `EARLY` of step `one` matches none of its transition elements
      step one COMPLETED EARLY
    begin one · process one · end one
    ");
}

/// Without a matching `next` element the attribute decides, or the job ends as after any last step.
///
/// Spec: SEQ-08, SEQ-22, D-18
#[test]
fn terminating_elements_that_do_not_match_change_nothing() {
    let elements = task("one", "next=\"two\"", "GOOD", r#"<fail on="BAD"/>"#)
        + &task("two", "", "GOOD", r#"<fail on="BAD"/><stop on="UGLY"/>"#);
    assert_snapshot!(run(&elements), @r"
    job job COMPLETED
      step one COMPLETED GOOD
      step two COMPLETED GOOD
    begin one · process one · end one · begin two · process two · end two
    ");
}

/// The step takes the status of the terminating element, and keeps its exit status; the listeners see both.
///
/// Spec: TERM-01, TERM-02, TERM-03, TERM-04, TERM-05, TERM-06, TERM-07, TERM-08, TERM-12, TERM-13, STATUS-16, STATUS-20, D-23, D-25
#[test]
fn fail_end_and_stop_end_the_job() {
    let elements = |result: &str| {
        let transitions = r#"<fail on="BAD" exit-status="SO BAD"/><end on="GOOD*"/><stop on="UGLY" exit-status="SO UGLY"/><next on="*" to="two"/>"#;
        r#"<listeners><listener ref="JobWatch"/></listeners>"#.to_owned()
            + &task("one", "", result, transitions)
            + &done("two")
    };
    assert_snapshot!(run(&elements("BAD")), @r"
    job job FAILED SO BAD | a `fail` element ended the job at `one`
      step one FAILED BAD
    JobWatch before job job STARTED · JobWatch before step one STARTED · begin one · process one
    end one · JobWatch after step one COMPLETED · JobWatch after job job FAILED
    ");
    assert_snapshot!(run(&elements("GOOD ENOUGH")), @r"
    job job COMPLETED
      step one COMPLETED GOOD ENOUGH
    JobWatch before job job STARTED · JobWatch before step one STARTED · begin one · process one
    end one · JobWatch after step one COMPLETED · JobWatch after job job COMPLETED
    ");
    assert_snapshot!(run(&elements("UGLY")), @r"
    job job STOPPED SO UGLY
      step one STOPPED UGLY
    JobWatch before job job STARTED · JobWatch before step one STARTED · begin one · process one
    end one · JobWatch after step one COMPLETED · JobWatch after job job STOPPED
    ");
}

/// A job ended by an `end` element is complete, even if elements remain.
///
/// Spec: TERM-15
#[test]
fn an_ended_job_is_complete() {
    let elements = task("one", "", "GOOD", r#"<end on="GOOD"/><next on="*" to="two"/>"#) + &done("two");
    let (stage, ended) = started(&elements, ());
    let error = stage.operator().restart(ended, ()).unwrap_err();
    assert_matches!(error, JobOperatorError::JobInstanceAlreadyComplete { .. });
}

/// An element without `exit-status` keeps the value that an artifact set.
///
/// Spec: TERM-06, STATUS-20, STATUS-21, D-25
#[test]
fn without_an_exit_status_the_context_counts() {
    let elements = task("one", "", "UGLY", r#"<stop on="UGLY"/>"#);
    let (stage, execution) = started(&elements, [("job.exit", "SEE THE LOG")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job STOPPED SEE THE LOG
      step one STOPPED UGLY
    ");
}

/// After a failed step only a transition element continues; the failure then does not fail the job.
///
/// Spec: SEQ-23, STATUS-15, D-22
#[test]
fn only_a_transition_element_continues_after_a_failed_step() {
    let failing = |transitions: &str| {
        let elements = task("one", "next=\"two\"", "DONE", transitions) + &done("two") + &done("three");
        let (stage, execution) = started(&elements, [("fail", "process one")]);
        story(&stage, execution)
    };
    assert_snapshot!(failing(""), @r"
    job job FAILED | cannot process one | thrown by #[process] of batchlet `Task`
      step one FAILED | the job's message
    begin one · process one · end one
    ");
    assert_snapshot!(failing(r#"<end on="FAILED" exit-status="WELL"/>"#), @r"
    job job COMPLETED WELL
      step one COMPLETED FAILED | cannot process one | thrown by #[process] of batchlet `Task`
    begin one · process one · end one
    ");
    let by_element = task("one", "", "DONE", r#"<next on="FAILED" to="two"/>"#) + &done("two");
    assert_snapshot!(run_with(&by_element, [("fail", "process one")]), @r"
    job job COMPLETED
      step one FAILED | cannot process one | thrown by #[process] of batchlet `Task`
      step two COMPLETED DONE
    begin one · process one · end one · begin two · process two · end two
    ");
}

/// An exit status set by a listener after the step decides the transition.
///
/// Spec: SEQ-26, LISTEN-STEP-04, STATUS-17
#[test]
fn an_after_listener_decides_the_transition() {
    let elements = format!(
        r#"<step id="one"><listeners><listener ref="StepWatch"/></listeners><batchlet ref="Task"/><next on="LISTENED" to="two"/></step>{}"#,
        done("two")
    );
    assert_snapshot!(run_with(&elements, [("after.exit", "LISTENED")]), @r"
    job job COMPLETED
      step one COMPLETED LISTENED
      step two COMPLETED DONE
    StepWatch before one STARTED · begin one · process one · end one · StepWatch after one COMPLETED
    begin two · process two · end two
    ");
}

/// Spec: SEQ-25, D-76
#[test]
fn an_element_runs_once_in_an_execution() {
    let elements = task("one", "next=\"two\"", "AGAIN", "")
        + &task(
            "two",
            "",
            "AGAIN",
            r#"<next on="AGAIN" to="one"/><end on="ENOUGH"/>"#,
        );
    assert_snapshot!(run(&elements), @r"
    job job FAILED
        | a transition leads to `one` a second time, but a job execution runs each element once
      step one COMPLETED AGAIN
      step two COMPLETED AGAIN
    begin one · process one · end one · begin two · process two · end two
    ");
}

/// A job that failed by its element fails again until the exit status changes; the step runs again.
///
/// Spec: TERM-11, RESTART-05, D-23
#[test]
fn a_step_that_failed_by_an_element_runs_again() {
    let elements = r#"<step id="one"><batchlet ref="Task"/><fail on="BAD"/></step>"#;
    let (stage, failed) = started(elements, [("result", "BAD")]);
    assert_snapshot!(tree(&stage, failed), @r"
    job job FAILED | a `fail` element ended the job at `one`
      step one FAILED BAD
    ");
    let again = restart_with(&stage, failed, [("result", "GOOD")]);
    assert_snapshot!(tree(&stage, again), @r"
    job job COMPLETED
      step one COMPLETED GOOD
    ");
}

/// A restart begins at the element that `stop` names, else at the stopped step; after any other end at the beginning,
/// where completed steps transition by their recorded exit status.
///
/// Spec: TERM-09, TERM-10, TERM-11, RESTART-04, RESTART-06, D-24
#[test]
fn a_restart_begins_where_the_stop_element_says() {
    let elements = |restart: &str| {
        let again = "allow-start-if-complete=\"true\"";
        let stop = format!(r#"<stop on="HALT" {restart}/><next on="*" to="three"/>"#);
        task("one", again, "FIRST", r#"<next on="FIRST" to="two"/>"#)
            + &task("two", "", "${second}", &stop)
            + &done("three")
    };
    for restart in ["", "restart=\"three\"", "restart=\"one\""] {
        let (stage, stopped) = started(&elements(restart), [("second", "HALT")]);
        assert_starts(&stage.tree(stopped), "job job STOPPED STOPPED\n");
        stage.log();
        let again = restart_with(&stage, stopped, [("fail", "process three"), ("second", "GO")]);
        let last = restart_with(&stage, again, [("second", "GO"), ("fail", "")]);
        let text = tree(&stage, again) + &story(&stage, last);
        insta::with_settings!({description => restart}, {
            assert_snapshot!(format!("a_restart_begins{}", restart.replace(['"', '='], "_")), text);
        });
    }
}

/// The restart position may no longer exist in the Job XML.
///
/// Spec: RESTART-03, RESTART-04
#[test]
fn a_removed_restart_position_is_an_error() {
    let elements = task("one", "", "HALT", r#"<stop on="HALT" restart="two"/>"#) + &done("two");
    let (stage, stopped) = started(&elements, ());
    let again = restart_edited(&stage, stopped, &job(&done("one")), ());
    assert_snapshot!(tree(&stage, again), @"job job FAILED | the restart has to start at `two`, which is no longer an element of job `job`");
}
