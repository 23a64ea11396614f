//! Limits of steps and jobs, an extension: runtime properties of the Job XML.

use batch_runtime::prelude::*;
use insta::assert_snapshot;

use crate::artifacts::{
    assert_completed, assert_contains, assert_starts, first_step_execution, job, job_execution, refused,
    restart_with, started, tree,
};
use crate::sequence::{done, meeting, run, task};
use batch_tests::stage::Stage;

fn with_timeout(name: &str, seconds: &str) -> String {
    format!(r#"<properties><property name="{name}" value="{seconds}"/></properties>"#)
}

/// Gives a step of a batchlet a timeout.
fn limited(step: &str, name: &str, seconds: &str) -> String {
    step.replace("<batchlet", &(with_timeout(name, seconds) + "<batchlet"))
}

/// A step that exceeds its timeout is stopped as by a stop request, and fails; a transition element may continue the
/// job.
///
/// Spec: SEQ-23, BLET-06
#[test]
fn a_step_that_exceeds_its_timeout_fails() {
    let waiting = meeting("a", "", "", "wait", r#"<next on="FAILED" to="two"/>"#);
    let waiting = limited(&waiting, "batch.step.timeout", "1");
    assert_snapshot!(run(&(waiting + &done("two"))), @r"
    job job COMPLETED
      step a FAILED | step `a` exceeded its timeout of 1s
      step two COMPLETED DONE
    cancel a · begin two · process two · end two
    ");
}

/// A step within its timeout is not affected.
#[test]
fn a_step_within_its_timeout_completes() {
    let quick = task("one", "next=\"two\"", "DONE", "");
    let quick = limited(&quick, "batch.step.timeout", "3600");
    let (stage, execution) = started(&(quick + &done("two")), ());
    assert_snapshot!(tree(&stage, execution), @r"
    job job COMPLETED
      step one COMPLETED DONE
      step two COMPLETED DONE
    ");
}

/// A job that exceeds its timeout is stopped, and fails; a restart resumes.
#[test]
fn a_job_that_exceeds_its_timeout_fails() {
    let elements =
        with_timeout("batch.job.timeout", "1") + &meeting("a", "next=\"two\"", "", "wait", "") + &done("two");
    assert_snapshot!(run(&elements), @r"
    job job FAILED | job `job` exceeded its timeout of 1s
      step a STOPPED a MET
    cancel a
    ");
}

#[test]
fn a_time_out_is_a_number_of_seconds() {
    let step = limited(&done("one"), "batch.step.timeout", "0");
    let stage = Stage::new(&job(&(with_timeout("batch.job.timeout", "soon") + &step)));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0012]: invalid value "soon" for `batch.job.timeout`
     --> jobs/job.xml:2:55
      |
    2 | <properties><property name="batch.job.timeout" value="soon"/></properties><step id="one" ><properties><property na…
      |                                                       ^^^^ expected a number of seconds, at least 1
      = help: `batch.job.timeout` is a property of the runtime

    error[ART0012]: invalid value "0" for `batch.step.timeout`
     --> jobs/job.xml:2:146
      |
    2 | …operties><step id="one" ><properties><property name="batch.step.timeout" value="0"/></properties><batchlet ref="Task"><properties><property …
      |                                                                                  ^ expected a number of seconds, at least 1
      = help: `batch.step.timeout` is a property of the runtime
    "#);
}

/// The timeout of the job's steps.
#[test]
fn a_step_timeout_of_a_job_applies_to_its_steps() {
    let steps = with_timeout("batch.step.timeout", "1") + &meeting("a", "", "", "wait", "");
    let (stage, execution) = started(&steps, ());
    assert_contains(&stage.tree(execution), "step `a` exceeded its timeout of 1s");
}

#[test]
fn a_property_of_a_job_is_rejected_on_a_step() {
    let step = limited(&done("one"), "batch.job.timeout", "60");
    assert_snapshot!(refused(&Stage::new(&job(&step)), "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0012]: `batch.job.timeout` is a property of a job, not of a step
     --> jobs/job.xml:2:45
      |
    2 | <step id="one" ><properties><property name="batch.job.timeout" value="60"/></properties><batchlet ref="T…
      |                                             ^^^^^^^^^^^^^^^^^ has no effect here
      = help: move it to the `properties` of the job
    "#);
}

/// Reads numbers without end, in one interval that never commits.
#[derive(BatchArtifact)]
struct Endless {
    #[batch_property(name = "bytes", value = "1")]
    bytes: usize,
    #[batch_property(name = "until", value = "18446744073709551615")]
    until: u64,
    next: u64,
}

#[item_reader]
impl Endless {
    #[open]
    fn open(&mut self, _: Option<String>) {}
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.next += 1;
        (self.next <= self.until).then_some(self.next)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> String {
        "x".repeat(self.bytes)
    }
}

#[item_processor("NoneOf")]
fn none_of(_number: u64) -> Option<u64> {
    None
}

#[item_writer("Nothing")]
fn nothing(_: &[u64]) {}

/// Returns a chunk job whose step has a property.
fn endless(property: &str, value: &str, of_reader: &str) -> String {
    job(&format!(
        r#"<step id="load">{}<chunk reader="Endless" processor="NoneOf" writer="Nothing" commit-interval="2000000000">
        <properties>{of_reader}</properties></chunk></step>"#,
        with_timeout(property, value)
    ))
}

/// A step that neither commits nor shows a heartbeat is stopped, and reports what it was doing; a batchlet is cancelled.
///
/// Spec: BLET-06
#[test]
fn a_step_without_a_heartbeat_fails() {
    let stage = Stage::new(&endless("batch.step.heartbeat", "1", ""));
    let execution = stage.start("job", ());
    let ended = first_step_execution(&stage, execution);
    assert_snapshot!(ended.exit_message, @r#"
    step `load` exceeded its heartbeat of 1s: it neither committed nor called `StepContext::heartbeat()` while reading or processing items (commits so far: 0); call it more often, or raise `batch.step.heartbeat`
    "#);

    let steps = with_timeout("batch.step.heartbeat", "1") + &meeting("a", "", "", "wait", "");
    assert_snapshot!(run(&steps), @r"
    job job FAILED
        | step `a` exceeded its heartbeat of 1s: it neither committed nor called `StepContext::heartbeat()`; call it more often, or raise `batch.step.heartbeat`
      step a FAILED | the job's message
    cancel a
    ");
}

/// A checkpoint is part of each commit, so its size is limited.
///
/// Spec: CHUNK-LOOP-11
#[test]
fn a_checkpoint_has_a_maximum_size() {
    let bytes = |bytes: usize| {
        format!(r#"<property name="until" value="1"/><property name="bytes" value="{bytes}"/>"#)
    };
    for (limit, size, status) in [
        // The JSON text has two quotation marks.
        ("100", 98, "COMPLETED"),
        ("100", 99, "FAILED"),
        ("2000000", 1 << 20, "COMPLETED"),
    ] {
        let stage = Stage::new(&endless("batch.checkpoint.limit", limit, &bytes(size)));
        let ended = job_execution(&stage, stage.start("job", ()));
        assert_eq!(ended.status.as_str(), status, "{size}: {}", ended.exit_message);
    }
    let stage = Stage::new(&endless("other", "1", &bytes(1 << 20)));
    assert_snapshot!(job_execution(&stage, stage.start("job", ())).exit_message, @"the checkpoint of reader `Endless` has 1048578 bytes, more than the 1048576 of `batch.checkpoint.limit`; store a position instead of data, or set this property of the step to a larger number of bytes");
}

/// Stores the number of bytes in its property.
#[batchlet("Hoarder")]
fn hoarder(#[batch_property] bytes: usize, #[batch_context] step: &StepContext) -> Result<(), BatchError> {
    step.set_persistent_user_data(&"x".repeat(bytes))
}

/// Spec: CTX-23
#[test]
fn persistent_user_data_has_a_maximum_size() {
    let step = r#"<step id="one"><batchlet ref="Hoarder"><properties><property name="bytes" value="BYTES"/></properties></batchlet></step>"#;
    let (stage, execution) = started(&step.replace("BYTES", "1048574"), ());
    assert_completed(&stage, execution);
    let (stage, execution) = started(&step.replace("BYTES", "1048575"), ());
    let message = job_execution(&stage, execution).exit_message;
    assert_starts(
        &message,
        "the persistent user data has 1048577 bytes, more than the 1048576",
    );
}

/// Each step has its own limit, also after another one has exceeded its.
///
/// Spec: BLET-06
#[test]
fn a_later_batchlet_is_cancelled_too() {
    let step = |id: &str, transitions: &str| {
        limited(
            &meeting(id, "", "", "wait", transitions),
            "batch.step.timeout",
            "1",
        )
    };
    let steps = step("a", r#"<next on="FAILED" to="b"/>"#) + &step("b", "");
    assert_snapshot!(run(&steps), @r"
    job job FAILED | step `b` exceeded its timeout of 1s
      step a FAILED | step `a` exceeded its timeout of 1s
      step b FAILED | the job's message
    cancel a · cancel b
    ");
}

/// Counts its checkpoints in the persistent user data, in the last call before each commit.
#[derive(BatchArtifact)]
struct CountsCheckpoints {
    checkpoints: u64,
    #[batch_context]
    step: StepContext,
}

#[item_writer]
impl CountsCheckpoints {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.checkpoints = checkpoint.unwrap_or(0);
    }
    #[write_items]
    fn write(&mut self, _: &[u64]) {}
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<u64, BatchError> {
        self.checkpoints += 1;
        self.step.set_persistent_user_data(&self.checkpoints)?;
        Ok(self.checkpoints)
    }
}

/// The data has the value at the commit, not at some call before.
///
/// Spec: CTX-23, CHUNK-LOOP-11
#[test]
fn user_data_is_stored_as_of_the_checkpoint() {
    let xml = endless("other", "1", r#"<property name="until" value="1"/>"#)
        .replace("\"Nothing\"", "\"CountsCheckpoints\"");
    let stage = Stage::new(&xml);
    let execution = stage.start("job", ());
    let ended = first_step_execution(&stage, execution);
    let stored = "SELECT SHORT_CONTEXT AS text FROM BATCH_STEP_EXECUTION_CONTEXT";
    let stored = stage.outside().rows(stored).remove(0);
    let expected = format!(r#""batch.persistent.user.data":"{}""#, ended.counters.commits);
    assert_contains(&stored, &expected);
}

/// Stores data, and reports what it finds.
#[batchlet("Remembers")]
fn remembers(#[batch_property] log: &str, #[batch_context] step: &StepContext) -> Result<String, BatchError> {
    let found: Option<String> = step.persistent_user_data()?;
    batch_tests::stage::say(log, format!("found {found:?}"));
    step.set_persistent_user_data(&"kept".to_owned())?;
    Ok("DONE".into())
}

/// A completed step that runs again begins without the data of its former run.
///
/// Spec: JSL-STEP-10, CTX-23, RESTART-14
#[test]
fn a_completed_step_that_runs_again_has_no_old_data() {
    let steps = r#"<step id="one" next="two" allow-start-if-complete="true"><batchlet ref="Remembers"/></step>
                   <step id="two"><batchlet ref="Unless"/></step>"#;
    let (stage, first) = started(steps, [("fail", "yes")]);
    restart_with(&stage, first, [("fail", "no")]);
    assert_eq!(stage.log(), ["found None", "found None"]);
}
