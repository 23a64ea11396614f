//! Timeouts of steps and jobs: an extension, runtime properties of the Job XML.

use insta::assert_snapshot;

use crate::artifacts::{job, refused, story};
use crate::sequence::{meeting, task};
use batch_runtime::JobParameters;
use batch_tests::stage::Stage;

fn with_timeout(name: &str, seconds: &str) -> String {
    format!(r#"<properties><property name="{name}" value="{seconds}"/></properties>"#)
}

/// A step that exceeds its timeout is stopped as by a stop request, and fails; a transition element may continue the
/// job.
///
/// Spec: SEQ-23, BLET-06
#[test]
fn a_step_that_exceeds_its_timeout_fails() {
    let waiting = meeting("a", "", "", "wait", r#"<next on="FAILED" to="two"/>"#).replace(
        "<batchlet",
        &format!("{}<batchlet", with_timeout("batch.step.timeout", "1")),
    );
    let stage = Stage::new(&job(&(waiting + &task("two", "", "DONE", ""))));
    let execution = stage.start("job", JobParameters::new());
    assert_snapshot!(story(&stage, execution), @r"
    job job COMPLETED COMPLETED
      step a FAILED FAILED read 0 filter 0 write 0 commit 0 rollback 0
        | step `a` exceeded its timeout of 1s
      step two COMPLETED DONE read 0 filter 0 write 0 commit 0 rollback 0
    cancel a
    begin two
    process two
    end two
    ");
}

/// A step within its timeout is not affected.
#[test]
fn a_step_within_its_timeout_completes() {
    let quick = task("one", "next=\"two\"", "DONE", "").replace(
        "<batchlet",
        &format!("{}<batchlet", with_timeout("batch.step.timeout", "3600")),
    );
    let stage = Stage::new(&job(&(quick + &task("two", "", "DONE", ""))));
    let execution = stage.start("job", JobParameters::new());
    assert_snapshot!(stage.tree(execution), @r#"
    job job COMPLETED COMPLETED
      step one COMPLETED DONE read 0 filter 0 write 0 commit 0 rollback 0
      step two COMPLETED DONE read 0 filter 0 write 0 commit 0 rollback 0
    "#);
}

/// A job that exceeds its timeout is stopped, and fails; a restart resumes.
#[test]
fn a_job_that_exceeds_its_timeout_fails() {
    let elements = with_timeout("batch.job.timeout", "1")
        + &meeting("a", "next=\"two\"", "", "wait", "")
        + &task("two", "", "DONE", "");
    let stage = Stage::new(&job(&elements));
    let execution = stage.start("job", JobParameters::new());
    assert_snapshot!(story(&stage, execution), @r#"
    job job FAILED FAILED
      | job `job` exceeded its timeout of 1s
      step a STOPPED a MET read 0 filter 0 write 0 commit 0 rollback 0
    cancel a
    "#);
}

#[test]
fn a_time_out_is_a_number_of_seconds() {
    let elements = with_timeout("batch.job.timeout", "soon")
        + &task("one", "", "DONE", "").replace(
            "<batchlet",
            &format!("{}<batchlet", with_timeout("batch.step.timeout", "0")),
        );
    let stage = Stage::new(&job(&elements));
    assert_snapshot!(refused(&stage, "job", JobParameters::new()), @r#"
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
