//! Section 4.4: splits.

use std::sync::{Barrier, Mutex};

use batch_runtime::prelude::*;
use insta::assert_snapshot;

use crate::artifacts::{
    Gate, assert_completed, assert_contains, assert_failed, chosen, job, restart_with, started, story,
};
use crate::parallel::{sorted, sorted_tree};
use crate::sequence::{decision, done, flow, meeting, run, split, task};
use batch_tests::stage::Stage;

/// Returns a flow of each of these names.
fn flow_of_each(names: &[&str], step: impl Fn(&str) -> String) -> String {
    let flows = names
        .iter()
        .map(|name| flow(&format!("flow-{name}"), "", &step(name)));
    flows.collect()
}

/// The flows run at the same time, each on a thread: each waits for all others.
///
/// Spec: SPLIT-01, SPLIT-03, SPLIT-06, SPLIT-07, SPLIT-08, SPLIT-19, SPLIT-25, DEC-13, CTX-34, CTX-35
#[test]
fn the_flows_of_a_split_run_at_the_same_time() {
    let flows = flow_of_each(&["a", "b", "c"], |name| meeting(name, "", "a, b, c", "end", ""));
    let elements = split("all", "next=\"choose\"", &flows)
        + &decision("choose", "GO", r#"<next on="GO" to="last"/>"#)
        + &done("last");
    let (stage, execution) = started(&elements, ());
    assert_contains(&sorted(&stage), "decide of job after split all COMPLETED");
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job COMPLETED GO
      step a COMPLETED a MET
      step b COMPLETED b MET
      step c COMPLETED c MET
      step last COMPLETED DONE
    ");
}

/// Each flow has its own contexts; the split's exit status can only be set on its own thread.
///
/// Spec: CTX-06, CTX-08, CTX-09, CTX-11, SPLIT-16, D-67
#[test]
fn each_flow_has_contexts_of_its_own() {
    let around = |id: &str| format!(r#"<step id="{id}"><batchlet ref="Around"/></step>"#);
    let flows = flow("left", "", &around("one")) + &flow("right", "", &around("two"));
    let elements = split("both", "next=\"choose\"", &flows)
        + &decision("choose", "GO", r#"<next on="GO" to="last"/>"#)
        + &around("last");
    let exits = [
        ("job.exit", "AS SET"),
        ("flow.exit", "OF THE FLOW"),
        ("split.exit", "OF THE SPLIT"),
    ];
    let (stage, execution) = started(&elements, exits);
    assert_snapshot!(sorted(&stage), @r#"
    decide of job after split both COMPLETED OF THE FLOW
    last: job job STARTED (seen before: false), flow none, split none
    one: job job STARTED (seen before: false), flow left STARTED, split both STARTED
    two: job job STARTED (seen before: false), flow right STARTED, split both STARTED
    "#);
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job COMPLETED AS SET
      step last COMPLETED SEEN
      step one COMPLETED SEEN
      step two COMPLETED SEEN
    ");
}

/// A split has the exit status of the last flow of the document, here one that follows another.
///
/// Spec: SPLIT-16, D-31, D-67
#[test]
fn the_last_flow_sets_the_exit_status() {
    let around = |id: &str, exit: &str| {
        format!(
            r#"<step id="{id}"><batchlet ref="Around"><properties>
                <property name="flow.exit" value="{exit}"/></properties></batchlet></step>"#
        )
    };
    let flows = flow("first", "next=\"second\"", &around("one", "EARLY"))
        + &flow("second", "", &around("two", "LATE"));
    let elements = split("both", "next=\"choose\"", &flows)
        + &decision("choose", "GO", r#"<next on="GO" to="last"/>"#)
        + &done("last");
    assert_contains(&run(&elements), "decide of job after split both COMPLETED LATE");
}

/// A flow that follows another starts when that has completed, possibly through a decision.
///
/// Spec: SPLIT-09, SPLIT-10, SPLIT-12, SEQ-11, DEC-18, D-29, D-30
#[test]
fn flows_of_a_split_follow_each_other() {
    let flows = flow("first", "next=\"choose\"", &task("one", "", "LOADED", ""))
        + &decision(
            "choose",
            "HERE",
            r#"<next on="HERE" to="second"/><end on="THERE"/>"#,
        )
        + &flow("second", "next=\"third\"", &done("two"))
        + &flow("third", "", &done("three"));
    assert_snapshot!(run(&split("chain", "", &flows)), @r"
    job job COMPLETED HERE
      step one COMPLETED LOADED
      step two COMPLETED DONE
      step three COMPLETED DONE
    begin one · process one · end one · decide of job after flow first COMPLETED LOADED · begin two
    process two · end two · begin three · process three · end three
    ");
}

/// If one flow fails the others are stopped: a batchlet by its `#[cancel]`, and no further step starts.
///
/// Spec: SPLIT-17, SPLIT-18, SPLIT-19, STATUS-15, STATUS-25, D-32
#[test]
fn a_flow_that_fails_stops_the_others() {
    let good = meeting("b", "next=\"later\"", "a", "wait", "") + &done("later");
    let flows = flow("bad", "", &meeting("a", "", "b", "fail", "")) + &flow("good", "", &good);
    let elements = split("both", "next=\"last\"", &flows) + &done("last");
    let (stage, execution) = started(&elements, ());
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job FAILED | a had enough | thrown by #[process] of batchlet `Meeting`
      step a FAILED | the job's message
      step b STOPPED b MET
    ");
    assert_snapshot!(sorted(&stage), @r#"cancel b"#);
}

/// A terminating element inside a flow ends the job accordingly, once all flows have ended.
///
/// Spec: SPLIT-17, SPLIT-18, SPLIT-21, STATUS-16, D-32
#[test]
fn a_terminating_element_in_a_flow_ends_the_job() {
    let mut text = String::new();
    for element in [
        r#"<end on="a MET" exit-status="WELL"/>"#,
        r#"<stop on="a MET"/>"#,
        r#"<fail on="a MET"/>"#,
    ] {
        let flows = flow("ending", "", &meeting("a", "", "b", "end", element))
            + &flow("other", "", &meeting("b", "", "a", "wait", ""));
        let elements = split("both", "next=\"last\"", &flows) + &done("last");
        let (stage, execution) = started(&elements, ());
        text += &sorted_tree(&stage, execution);
    }
    assert_snapshot!(text, @r"
    job job COMPLETED WELL
      step a COMPLETED a MET
      step b STOPPED b MET
    job job STOPPED
      step a STOPPED a MET
      step b STOPPED b MET
    job job FAILED | a `fail` element ended the job at `both`
      step a FAILED a MET
      step b STOPPED b MET
    ");
}

/// A restart skips completed steps and resumes the rest.
///
/// Spec: SPLIT-23, RESTART-05, RESTART-11
#[test]
fn an_incomplete_split_resumes() {
    let left = task("one", "next=\"two\"", "DONE", "") + &done("two");
    let flows = flow("left", "", &left)
        + &flow("right", "next=\"third\"", &done("three"))
        + &flow("third", "", &done("four"));
    let elements = split("both", "next=\"last\"", &flows) + &done("last");
    let (stage, failed) = started(&elements, [("fail", "process two;process four;process last")]);
    assert_failed(&stage, failed, "");
    let again = restart_with(&stage, failed, [("fail", "process last")]);
    let calls = chosen(&stage, &["process one"]);
    assert_eq!(calls, ["process one"]);
    assert_contains(&stage.tree(again), "step last FAILED");
    let last = restart_with(&stage, again, [("fail", "")]);
    assert_snapshot!(story(&stage, last), @r"
    job job COMPLETED
      step last COMPLETED DONE
    begin last · process last · end last
    ");
}

/// A stop reaches every flow; the job is STOPPED when all threads have ended.
///
/// Spec: STATUS-10, STATUS-11, STATUS-26, BLET-06, OP-17, D-60
#[test]
fn a_stop_reaches_every_flow() {
    let flows = flow_of_each(&["a", "b"], |name| meeting(name, "", "a, b", "wait", ""));
    let elements = split("both", "next=\"last\"", &flows) + &done("last");
    let stage = Stage::new(&job(&elements));
    let operator = stage.operator();
    let execution = operator.start("job", ()).unwrap();
    let gate = Gate::at(&stage);
    gate.pass("a is here");
    gate.pass("b is here");
    assert!(operator.stop(execution).unwrap());
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job STOPPED
      step a STOPPED a MET
      step b STOPPED b MET
    ");
    assert_snapshot!(sorted(&stage), @"cancel a · cancel b");
    let again = restart_with(&stage, execution, [("then", "end")]);
    assert_completed(&stage, again);
}

/// One instance of a job listener is called for the steps of all flows, one call at a time, each with the contexts of
/// its step.
///
/// Spec: LISTEN-JOB-04, LISTEN-JOB-05, LISTEN-JOB-06, LISTEN-JOB-09, D-66
#[test]
fn a_job_listener_is_called_for_every_flow() {
    let flows = flow_of_each(&["a", "b", "c"], done);
    let listeners = r#"<listeners><listener ref="JobWatch"/></listeners>"#.to_owned();
    let (stage, _) = started(&(listeners + &split("all", "", &flows)), ());
    let log = chosen(&stage, &["JobWatch"]);
    assert_eq!(log[0], "JobWatch before job job STARTED");
    assert_eq!(log[log.len() - 1], "JobWatch after job job COMPLETED");
    for name in ["a", "b", "c"] {
        for call in ["before step NAME STARTED", "after step NAME COMPLETED"] {
            let call = format!("JobWatch {}", call.replace("NAME", name));
            assert_eq!(log.iter().filter(|other| **other == call).count(), 1, "{log:?}");
        }
    }
}

/// The flows that run, and the most that ran at the same time.
static RUNNING: Mutex<(usize, usize)> = Mutex::new((0, 0));
static THREE: Barrier = Barrier::new(3);

/// Waits for two others.
#[batchlet("OneOfThree")]
fn one_of_three() {
    {
        let mut running = RUNNING.lock().unwrap();
        running.0 += 1;
        running.1 = running.1.max(running.0);
    }
    THREE.wait();
    RUNNING.lock().unwrap().0 -= 1;
    THREE.wait();
}

/// At most `batch.split.threads` flows run at the same time, and each other one when one has ended.
///
/// Spec: LOSS-15, SPLIT-06
#[test]
fn a_limit_applies_to_the_flows_of_a_split() {
    let names: Vec<String> = (0..99).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let step = |name: &str| format!("<step id=\"{name}\"><batchlet ref=\"OneOfThree\"/></step>");
    let limit = "<properties><property name=\"batch.split.threads\" value=\"3\"/></properties>";
    let xml = job(&(limit.to_owned() + &split("all", "", &flow_of_each(&names, step))));
    let stage = Stage::new(&xml);
    let execution = stage.start("job", ());
    let tree = stage.tree(execution);
    assert_eq!(tree.matches("COMPLETED COMPLETED").count(), 100, "{tree}");
    assert_eq!(*RUNNING.lock().unwrap(), (0, 3));
}
