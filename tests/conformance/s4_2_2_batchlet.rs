//! 4.2.2 and 5.1.2: batchlet steps.

use crate::sequence::run_with;

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobOperatorError};
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    Gate, assert_matches, held, impatient, job, restart_with, started, stopped, story, wrapped,
};

const ONE: &str =
    r#"<step id="one" next="two"><batchlet ref="Task"/></step><step id="two"><batchlet ref="Task"/></step>"#;

/// A batchlet runs once, and its result is the exit status; an empty result fails the step.
///
/// Spec: JSL-BATCHLET-01, JSL-BATCHLET-02, BLET-01 to BLET-05, BLET-10, STATUS-19, STATUS-25, ART-11, SEQ-02
#[test]
fn a_batchlet_runs_once_and_gives_the_exit_status() {
    assert_snapshot!(run_with(ONE, [("result", "42 files")]), @r"
    job job COMPLETED
      step one COMPLETED 42 files
      step two COMPLETED 42 files
    begin one · process one · end one · begin two · process two · end two
    ");
    assert_snapshot!(run_with(ONE, [("result", "")]), @r"
    job job FAILED | batchlet `Task` returned an empty exit status
      step one FAILED | the job's message
    begin one · process one · end one
    ");
}

/// `end_step` is called whenever `begin_step` succeeded; the first error is reported.
///
/// Spec: BLET-02, BLET-10, STATUS-12, STATUS-25, CHUNK-EXC-03, DOM-17
#[test]
fn an_error_or_panic_of_any_method_fails_the_step() {
    let stage = Stage::new(&job(ONE));
    let mut text = String::new();
    for (parameter, calls) in [
        ("fail", "begin one"),
        ("fail", "process one"),
        ("fail", "end one"),
        ("fail", "process one;end one"),
        ("panic", "begin one"),
        ("panic", "process one"),
        ("panic", "end one"),
    ] {
        let execution = stage.start("job", [(parameter, calls)]);
        text += &format!("== {parameter} {calls}\n{}\n", story(&stage, execution));
    }
    assert_snapshot!(text);
}

/// Spec: BLET-06, BLET-07, BLET-08, OP-17, OP-18, STATUS-10, STATUS-11, STATUS-26, CTX-16, CTX-26, CTX-39, DOM-17
#[test]
fn a_stop_cancels_the_running_batchlet_once() {
    let stage = Stage::new(&job(ONE));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let execution = operator.start("job", [("hold", "until cancelled")]).unwrap();
    gate.pass("held");
    assert!(operator.stop(execution).unwrap());
    assert_snapshot!(story(&stage, execution), @r"
    job job STOPPED
      step one STOPPED DONE
    begin one · hold one · cancel (STOPPING, STOPPING) one · process one · end one
    ");
    let again = operator.stop(execution).unwrap_err();
    assert_matches!(again, JobOperatorError::JobExecutionNotRunning(id) if id == execution);
}

/// The runtime does not kill a batchlet that ignores `cancel`; a second stop changes nothing.
///
/// Spec: BLET-08, BLET-09, OP-17, OP-18, STATUS-10
#[test]
fn a_batchlet_that_ignores_cancel_runs_to_its_end() {
    let stage = impatient(&job(ONE));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let execution = operator.start("job", [("hold", "until opened")]).unwrap();
    gate.pass("held");
    assert!(!operator.stop(execution).unwrap());
    assert!(!operator.stop(execution).unwrap());
    let running = operator.job_execution(execution).unwrap().unwrap();
    assert_eq!(running.status, BatchStatus::Stopping);
    assert_eq!(operator.running_executions("job").unwrap(), [execution]);
    gate.open("go");
    operator.wait(execution).unwrap();
    assert_snapshot!(story(&stage, execution), @r"
    job job STOPPED
      step one STOPPED DONE
    begin one · hold one · cancel (STOPPING, STOPPING) one · process one · end one
    ");
}

/// Spec: BLET-06, BLET-07, STATUS-26, CHUNK-EXC-03
#[test]
fn an_error_or_panic_of_cancel_is_only_logged() {
    for parameter in ["fail", "panic"] {
        let stage = Stage::new(&job(ONE));
        let call = "cancel (STOPPING, STOPPING) one";
        let execution = held(&stage, [("hold", "until cancelled"), (parameter, call)]);
        assert!(stage.operator().stop(execution).unwrap());
        assert!(stage.log().contains(&call.to_owned()));
    }
}

/// Spec: STATUS-26, BLET-07, BLET-10
#[test]
fn an_error_while_stopping_fails_the_job() {
    let stage = Stage::new(&job(ONE));
    let execution = held(&stage, [("hold", "until cancelled"), ("fail", "process one")]);
    assert!(
        !stage.operator().stop(execution).unwrap(),
        "it did not stop, it failed"
    );
    assert_snapshot!(story(&stage, execution), @r"
    job job FAILED | cannot process one | thrown by #[process] of batchlet `Task`
      step one FAILED | the job's message
    begin one · hold one · cancel (STOPPING, STOPPING) one · process one · end one
    ");
}

/// Waits in `#[begin_step]`.
#[derive(BatchArtifact)]
struct WaitsAtTheBeginning {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "folder")]
    folder: String,
}

#[batchlet]
impl WaitsAtTheBeginning {
    #[begin_step]
    fn begin(&self) {
        Gate::of(&self.folder).hold();
    }
    #[process]
    fn process(&self) -> String {
        say(&self.log, "process");
        "DONE".into()
    }
    #[cancel]
    fn cancel(&self) {
        say(&self.log, "cancel");
    }
}

/// Spec: BLET-08, BLET-10
#[test]
fn cancel_is_not_called_before_process() {
    let stage = impatient(&job(
        r#"<step id="one"><batchlet ref="WaitsAtTheBeginning"/></step>"#,
    ));
    let execution = stopped(&stage, ());
    assert_snapshot!(story(&stage, execution), @r"
    job job STOPPED
      step one STOPPED
    ");
}

/// Counts its executions in the persistent user data.
#[derive(BatchArtifact)]
struct Tally {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "fail")]
    fail: String,
    #[batch_context]
    step: StepContext,
}

impl Tally {
    fn kept(&self) -> Option<u32> {
        self.step.persistent_user_data().unwrap()
    }
}

#[batchlet]
impl Tally {
    #[begin_step]
    fn begin(&self) {
        say(
            &self.log,
            format!("begin {} with {:?}", self.step.id(), self.kept()),
        );
    }
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let runs = self.kept().unwrap_or(0) + 1;
        self.step.set_persistent_user_data(&runs)?;
        match self.fail == self.step.id() {
            true => Err(BatchError::msg("not yet")),
            false => Ok("DONE".into()),
        }
    }
}

/// The data of a failed batchlet is saved at its end, is available on restart, and belongs to one step of one instance.
///
/// Spec: BLET-12, CTX-23, CTX-24, CTX-25, RESTART-08, RESTART-14, DOM-07, DOM-19
#[test]
fn persistent_user_data_is_kept_per_step_and_instance() {
    let elements = r#"<step id="one" next="two"><batchlet ref="Tally"/></step><step id="two"><batchlet ref="Tally"/></step>"#;
    let (stage, first) = started(elements, [("fail", "two")]);
    let second = restart_with(&stage, first, [("fail", "two")]);
    restart_with(&stage, second, [("fail", "")]);
    stage.start("job", ());
    assert_snapshot!(wrapped(&stage.log()), @r"
    begin one with None · begin two with None · begin two with Some(1) · begin two with Some(2)
    begin one with None · begin two with None
    ");
}
