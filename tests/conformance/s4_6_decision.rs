//! Section 4.6: decisions.

use insta::assert_snapshot;

use crate::artifacts::{assert_starts, job, restart_with, started, story, tree};
use crate::sequence::{decision, done, flow, run, split, task};
use batch_runtime::prelude::*;
use batch_tests::stage::Stage;

fn elements(transitions: &str) -> String {
    task("one", "next=\"choose\"", "LOADED", "")
        + &format!(r#"<decision id="choose" decider="Choice">{transitions}</decision>"#)
        + &done("two")
}

const ALL: &str =
    r#"<next on="GO*" to="two"/><fail on="BAD"/><end on="GOOD" exit-status="WELL"/><stop on="UGLY"/>"#;

/// The result chooses the transition, and is the job's exit status unless the element sets one.
///
/// Spec: DEC-01, DEC-03, DEC-04, DEC-05, DEC-06, DEC-07, DEC-08, DEC-09, DEC-12, DEC-14, DEC-21, CTX-10, D-25, D-27
#[test]
fn the_result_chooses_the_transition() {
    let mut text = String::new();
    for answer in ["GO ON", "BAD", "GOOD", "UGLY"] {
        let (stage, execution) = started(&elements(ALL), [("answer", answer)]);
        text += &format!("{}\n", story(&stage, execution));
    }
    assert_snapshot!(text, @r"
    job job COMPLETED GO ON
      step one COMPLETED LOADED
      step two COMPLETED DONE
    begin one · process one · end one · decide of job after step one COMPLETED LOADED · begin two
    process two · end two
    job job FAILED BAD | a `fail` element ended the job at `choose`
      step one COMPLETED LOADED
    begin one · process one · end one · decide of job after step one COMPLETED LOADED
    job job COMPLETED WELL
      step one COMPLETED LOADED
    begin one · process one · end one · decide of job after step one COMPLETED LOADED
    job job STOPPED UGLY
      step one COMPLETED LOADED
    begin one · process one · end one · decide of job after step one COMPLETED LOADED
    ");
}

/// Spec: DEC-15, DEC-17, STATUS-25, CHUNK-EXC-03
#[test]
fn a_result_without_a_transition_fails_the_job() {
    let mut text = String::new();
    let thrown = "decide of job after step one COMPLETED LOADED";
    for parameters in [
        [("answer", "OTHER"), ("fail", "")],
        [("answer", ""), ("fail", "")],
        [("answer", "GO"), ("fail", thrown)],
        [("answer", "GO"), ("panic", thrown)],
    ] {
        let (stage, execution) = started(&elements(ALL), parameters);
        text += &format!("{}\n", tree(&stage, execution));
    }
    assert_snapshot!(text, @r"
    job job FAILED OTHER
        | the result `OTHER` of decision `choose` matches none of its transition elements
      step one COMPLETED LOADED

    job job FAILED | decider `Choice` returned an empty exit status
      step one COMPLETED LOADED

    job job FAILED | cannot decide of job after step one COMPLETED LOADED
        | thrown by #[decide] of decider `Choice`
      step one COMPLETED LOADED

    job job FAILED | the artifact panicked: no way to decide of job after step one COMPLETED LOADED
        | thrown by #[decide] of decider `Choice`
      step one COMPLETED LOADED
    ");
}

/// A decision that stopped the job runs again, with the status that it saw; so does one that a restart reaches.
///
/// Spec: DEC-16, DEC-19, RESTART-12, D-24
#[test]
fn a_decision_that_stopped_runs_again() {
    let (stage, stopped) = started(&elements(ALL), [("answer", "UGLY")]);
    let again = restart_with(&stage, stopped, [("answer", "GO ON"), ("fail", "process two")]);
    let last = restart_with(&stage, again, [("answer", "GO ON")]);
    let text = tree(&stage, again) + &story(&stage, last);
    assert_snapshot!(text, @r"
    job job FAILED GO ON | cannot process two | thrown by #[process] of batchlet `Task`
      step two FAILED | the job's message
    job job COMPLETED GO ON
      step two COMPLETED DONE
    begin one · process one · end one · decide of job after step one COMPLETED LOADED
    decide of job after step one COMPLETED LOADED · begin two · process two · end two
    decide of job after step one COMPLETED LOADED · begin two · process two · end two
    ");
}

/// Spec: DEC-11, BPROP-03, BPROP-04
#[test]
fn a_decider_gets_its_properties() {
    let elements = task("one", "next=\"choose\"", "DONE", "")
        + &decision(
            "choose",
            "TWO",
            r#"<next on="ONE" to="three"/><next on="TWO" to="two"/>"#,
        )
        + &done("two")
        + &done("three");
    let (stage, execution) = started(&elements, ());
    assert_snapshot!(tree(&stage, execution), @r"
    job job COMPLETED TWO
      step one COMPLETED DONE
      step two COMPLETED DONE
    ");
}

/// Each execution has its own; they are no data of the job.
///
/// Spec: DEC-18
#[test]
fn the_answers_of_deciders_are_kept() {
    let stage = Stage::new(&job(&elements(ALL)));
    let data = |id| stage.operator().persistent_data(id).unwrap();
    let shown = |(path, answer): (&str, String)| format!("{path}: {answer}");
    let answers = |id| data(id).decisions().map(shown).collect::<Vec<_>>();
    let first = stage.start("job", [("answer", "UGLY")]);
    assert_eq!(answers(first), ["choose: UGLY"]);
    assert_eq!(data(first).iter().count(), 0);
    let second = restart_with(&stage, first, [("answer", "GO \"2\"")]);
    assert_eq!(answers(second), ["choose: GO \"2\""]);
    assert_eq!(answers(first), ["choose: UGLY"]);
}

/// Decides by the context of the flow before it.
#[decider("AfterFlow")]
fn after_flow(#[batch_context] flow: &FlowContext) -> String {
    format!("after {}", flow.id())
}

/// Decides by the context of the split before it.
#[decider("AfterSplit")]
fn after_split(#[batch_context] split: &SplitContext) -> String {
    format!("after {}", split.id())
}

/// A decider may require the context of the flow or split before it; after another element its job cannot start.
///
/// Spec: CTX-05, CTX-10
#[test]
fn a_decider_may_require_the_context_of_a_flow_or_split() {
    let one = flow("one", "", &done("first"));
    let decided = |decider: &str| {
        let ended = r#"<end on="after one"/><end on="after both"/>"#;
        format!(r#"<decision id="choose" decider="{decider}">{ended}</decision>"#)
    };
    let flows = one.clone() + &flow("two", "", &done("second"));
    let both = split("both", "next=\"choose\"", &flows);
    let alone = one.replacen("id=\"one\"", "id=\"one\" next=\"choose\"", 1);
    for (before, decider, exit) in [
        (&alone, "AfterFlow", "after one"),
        (&both, "AfterSplit", "after both"),
    ] {
        let story = run(&(before.clone() + &decided(decider)));
        assert_starts(&story, &format!("job job COMPLETED {exit}"));
    }
    let elements = task("first", "next=\"choose\"", "DONE", "") + &decided("AfterFlow");
    assert_starts(&run(&elements), "job job FAILED");
}
