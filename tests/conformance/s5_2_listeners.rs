//! 5.2: job and step listeners.

use crate::sequence::run;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{job, listens, restart_with, started, story, tree, wrapped};

/// Two job listeners and two step listeners; the wrapper `listeners` and bare ones are the same.
const LISTENED: &str = r#"
  <listeners><listener ref="JobWatch"><properties><property name="name" value="J1"/></properties></listener>
    <listener ref="JobWatch"><properties><property name="name" value="J2"/></properties></listener></listeners>
  <step id="one" next="two">
    <listener ref="StepWatch"><properties><property name="name" value="S1"/></properties></listener>
    <listener ref="StepWatch"><properties><property name="name" value="S2"/></properties></listener>
    <batchlet ref="Task"/>
  </step>
  <step id="two"><batchlet ref="Task"/></step>"#;

/// Job listeners outside step listeners, each kind in the order of the XML, before and after alike.
///
/// Spec: LISTEN-JOB-01, LISTEN-JOB-02, LISTEN-JOB-03, LISTEN-JOB-04, LISTEN-JOB-05, LISTEN-JOB-06, LISTEN-JOB-08,
/// Spec: LISTEN-STEP-01, LISTEN-STEP-02, LISTEN-STEP-03, JSL-JOBLIS-01, JSL-JOBLIS-02, JSL-JOBLIS-03, JSL-JOBLIS-04,
/// Spec: JSL-JOBLIS-08, JSL-JOBLIS-09, JSL-STEPLIS-01, JSL-STEPLIS-04, JSL-STEPLIS-05, JSL-STEPLIS-06, CTX-12, BLET-02
#[test]
fn listeners_are_called_in_the_order_of_the_xml() {
    assert_snapshot!(run(LISTENED), @r"
    job job COMPLETED
      step one COMPLETED DONE
      step two COMPLETED DONE
    J1 before job job STARTED · J2 before job job STARTED · J1 before step one STARTED
    J2 before step one STARTED · S1 before one STARTED · S2 before one STARTED · begin one · process one
    end one · S1 after one COMPLETED · S2 after one COMPLETED · J1 after step one COMPLETED
    J2 after step one COMPLETED · J1 before step two STARTED · J2 before step two STARTED · begin two
    process two · end two · J1 after step two COMPLETED · J2 after step two COMPLETED
    J1 after job job COMPLETED · J2 after job job COMPLETED
    ");
}

/// Spec: LISTEN-JOB-07, RESTART-05
#[test]
fn a_restart_calls_job_listeners_but_none_for_skipped_steps() {
    let (stage, execution) = started(LISTENED, [("fail", "process two")]);
    stage.log();
    let again = restart_with(&stage, execution, [("fail", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step two COMPLETED DONE
    J1 before job job STARTED · J2 before job job STARTED · J1 before step two STARTED
    J2 before step two STARTED · begin two · process two · end two · J1 after step two COMPLETED
    J2 after step two COMPLETED · J1 after job job COMPLETED · J2 after job job COMPLETED
    ");
}

/// Even if a listener fails, every after-callback is called, and the step or job fails.
///
/// Spec: STATUS-24, STATUS-25, STATUS-27, LISTEN-STEP-03, LISTEN-STEP-05, CHUNK-EXC-03, LISTEN-JOB-03
#[test]
fn an_error_or_panic_of_a_listener_fails_its_scope() {
    let stage = Stage::new(&job(LISTENED));
    let mut text = String::new();
    let calls = [
        "J1 before job job STARTED",
        "J1 before step one STARTED",
        "S1 before one STARTED",
        "S1 after one COMPLETED",
        "J1 after step one COMPLETED",
        "J1 after job job COMPLETED",
    ];
    for (parameter, call) in ["fail", "panic"]
        .iter()
        .flat_map(|how| calls.map(|call| (*how, call)))
    {
        let execution = stage.start("job", [(parameter, call)]);
        text += &format!("== {parameter} {call}\n{}\n", story(&stage, execution));
    }
    assert_snapshot!(text);
}

/// The step's own error is reported, not a later one of its listeners.
///
/// Spec: STATUS-27, LISTEN-STEP-03
#[test]
fn a_listeners_error_does_not_hide_the_first_one() {
    let fail = "process one;S1 after one FAILED;S2 after one FAILED;J2 after job job FAILED";
    let (stage, execution) = started(LISTENED, [("fail", fail)]);
    assert_snapshot!(story(&stage, execution), @r"
    job job FAILED | cannot process one | thrown by #[process] of batchlet `Task`
      step one FAILED | the job's message
    J1 before job job STARTED · J2 before job job STARTED · J1 before step one STARTED
    J2 before step one STARTED · S1 before one STARTED · S2 before one STARTED · begin one · process one
    end one · S1 after one FAILED · S2 after one FAILED · J1 after step one FAILED
    J2 after step one FAILED · J1 after job job FAILED · J2 after job job FAILED
    ");
}

/// The after-listeners see the final batch status and may still set the exit status.
///
/// Spec: LISTEN-STEP-03, LISTEN-JOB-03, STATUS-17, STATUS-18, STATUS-20, STATUS-21
#[test]
fn after_listeners_may_set_the_exit_status() {
    let (stage, execution) = started(LISTENED, [("after.exit", "LATE"), ("after.job.exit", "LATER")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job COMPLETED LATER
      step one COMPLETED LATE
      step two COMPLETED DONE
    ");
}

/// Counts its own calls, so that it shows which instance is called.
#[derive(BatchArtifact)]
struct Counting {
    #[batch_property(name = "log")]
    log: String,
    calls: u32,
}

impl Counting {
    fn count(&mut self, call: &str) -> Result<(), BatchError> {
        self.calls += 1;
        say(&self.log, format!("{call}: call {}", self.calls));
        Ok(())
    }
}

listens!(job_listener Counting.count:
    before_job "before job", before_step "before each step", after_job "after job");

#[step_listener]
impl Counting {
    #[before_step]
    fn before(&mut self) -> Result<(), BatchError> {
        self.count("before step")
    }
    #[after_step]
    fn after(&mut self) -> Result<(), BatchError> {
        self.count("after step")
    }
}

/// One instance for each `listener` element: a job listener's lives as long as the job, a step listener's as the step.
///
/// Spec: LISTEN-JOB-09, ART-08, LOADER-18, JSL-STEPLIS-07, BPROP-12
#[test]
fn each_listener_element_has_its_own_instance() {
    let elements = r#"<listener ref="Counting"/>
           <step id="one" next="two"><listener ref="Counting"/><listener ref="Counting"/><batchlet ref="Task"/></step>
           <step id="two"><listener ref="Counting"/><batchlet ref="Task"/></step>"#;
    let (stage, _) = started(elements, ());
    assert_snapshot!(wrapped(&stage.log()), @r"
    before job: call 1 · before each step: call 2 · before step: call 1 · before step: call 1
    begin one · process one · end one · after step: call 2 · after step: call 2
    before each step: call 3 · before step: call 1 · begin two · process two · end two
    after step: call 2 · after job: call 4
    ");
}

mod silent {
    #![allow(deprecated, reason = "a listener without methods is legal in the draft")]
    use batch_runtime::prelude::*;

    /// Has no listener methods.
    #[derive(BatchArtifact)]
    struct Silent {}

    #[job_listener]
    impl Silent {}
}

/// Spec: LISTEN-JOB-02, LISTEN-JOB-03, LISTEN-JOB-04, LISTEN-JOB-05
#[test]
fn every_listener_method_is_optional() {
    let elements = r#"<listener ref="Silent"/><step id="one"><batchlet ref="Task"/></step>"#;
    assert_snapshot!(run(elements), @r"
    job job COMPLETED
      step one COMPLETED DONE
    begin one · process one · end one
    ");
}
