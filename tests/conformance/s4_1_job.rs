//! 4.1: the job element.

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobOperatorError, operator::StartError};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{assert_matches, job, job_execution, listens, refused, wrapped};

const STEP: &str = r#"<step id="one"><batchlet ref="Task"/></step>"#;

/// A job that is not restartable can be started repeatedly, and never resumed.
///
/// Spec: JSL-JOB-03, JSL-JOB-04, RESTART-02, OP-14, STATUS-23
#[test]
fn a_job_that_is_not_restartable_is_never_resumed() {
    let stage = Stage::new(&format!(r#"<job id="job" restartable="false">{STEP}</job>"#));
    let operator = stage.operator();
    let execution = stage.start("job", [("fail", "process one")]);
    let before = job_execution(&stage, execution);
    let error = operator.restart(execution, ()).unwrap_err();
    assert_snapshot!(error, @"cannot restart job execution 1: it is not restartable, and its instance already has execution 1");
    assert_matches!(
        error,
        JobOperatorError::JobRestart {
            cause: StartError::NotRestartable { .. },
            ..
        }
    );
    assert_eq!(job_execution(&stage, execution), before, "nothing was changed");
    assert_eq!(stage.executions(before.instance_id), [execution]);
    stage.start("job", ());
    stage.start("job", ());
    assert_eq!(operator.job_instance_count("job").unwrap(), 3);
}

/// Restartable is the default.
///
/// Spec: JSL-JOB-03, RESTART-01
#[test]
fn jobs_are_restartable() {
    let stage = Stage::new(&job(STEP));
    let operator = stage.operator();
    assert!(operator.definitions().is_restartable("job"));
    assert!(!operator.definitions().is_restartable("one that is gone"));
    let execution = stage.start("job", [("fail", "process one")]);
    let again = stage.restart(execution);
    assert_eq!(job_execution(&stage, again).status, BatchStatus::Failed);
}

/// Spec: JSL-JOB-05, JSL-JOB-06, DOM-04
#[test]
fn an_invalid_job_is_rejected_before_anything_runs() {
    let stage = Stage::new(&format!(r#"<job id="job" abstract="true">{STEP}</job>"#));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[JSL0030]: an abstract job cannot be started
     --> jobs/job.xml:1:15
      |
    1 | <job id="job" abstract="true"><step id="one"><batchlet ref="Task"/></step></job>
      |               ^^^^^^^^ can only be used as a parent
    "#);
    let stage = Stage::new(r#"<job id="job"/>"#);
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[JSL0029]: job `job` has nothing to execute
     --> jobs/job.xml:1:2
      |
    1 | <job id="job"/>
      |  ^^^ a step, flow or split that is not abstract is required
    "#);
    let step = r#"<job id="job"><step id="one" abstract="true"><batchlet ref="Task"/></step></job>"#;
    let stage = Stage::new(step);
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[JSL0029]: job `job` has nothing to execute
     --> jobs/job.xml:1:2
      |
    1 | <job id="job"><step id="one" abstract="true"><batchlet ref="Task"/></step></job>
      |  ^^^ a step, flow or split that is not abstract is required
    "#);
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
}

/// A job has any number of properties, or none; every artifact of the job sees them.
///
/// Spec: JSL-JOB-09, JSL-JOBPROP-01, JSL-JOBPROP-02, JSL-JOBPROP-03, JSL-JOBPROP-04, JSL-JOBPROP-05, CTX-14, OVR-07
#[test]
fn job_properties_reach_every_artifact_and_the_context() {
    let stage = Stage::new(
        r#"<job id="job">
             <properties><property name="region" value="north"/><property name="file" value="${region}.txt"/><property name="none" value=""/></properties>
             <listener ref="ShowsProperties"/>
             <step id="one"><listener ref="ShowsProperties"/><batchlet ref="ShowsProperties"/></step>
           </job>"#,
    );
    stage.start("job", ());
    assert_snapshot!(wrapped(&stage.log()), @r#"
    job listener: north {"file": "north.txt", "none": "", "region": "north"}
    step listener: north {"file": "north.txt", "none": "", "region": "north"}
    batchlet: north {"file": "north.txt", "none": "", "region": "north"}
    "#);
    // A job parameter overrides the property's value everywhere.
    stage.start("job", [("region", "south")]);
    assert_snapshot!(wrapped(&stage.log()), @r#"
    job listener: south {"file": "south.txt", "none": "", "region": "south"}
    step listener: south {"file": "south.txt", "none": "", "region": "south"}
    batchlet: south {"file": "south.txt", "none": "", "region": "south"}
    "#);
}

/// Shows the property `region`, and the properties of the job's context.
#[derive(BatchArtifact)]
struct ShowsProperties {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "region")]
    region: String,
    #[batch_context]
    job: JobContext,
}

impl ShowsProperties {
    fn show(&self, who: &str) -> Result<(), BatchError> {
        let text = format!("{who}: {} {:?}", self.region, self.job.properties());
        batch_tests::stage::say(&self.log, text);
        Ok(())
    }
}

listens!(job_listener ShowsProperties.show: before_job "job listener");
listens!(step_listener ShowsProperties.show: before_step "step listener");

#[batchlet]
impl ShowsProperties {
    #[process]
    fn process(&self) -> Result<(), BatchError> {
        self.show("batchlet")
    }
}

/// Spec: JSL-JOBLIS-05, JSL-STEPLIS-03, ART-09
#[test]
fn a_listener_of_another_scope_is_rejected() {
    let stage = Stage::new(&job(&format!(r#"<listener ref="StepWatch"/>{STEP}"#)));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0002]: `StepWatch` is not a job listener but a step listener
     --> jobs/job.xml:2:16
      |
    2 | <listener ref="StepWatch"/><step id="one"><batchlet ref="Task"/></step>
      |                ^^^^^^^^^ a job listener is required here
      = help: `StepWatch` is registered at tests/conformance/artifacts.rs
    "#);
    let step = r#"<step id="one"><listener ref="JobWatch"/><batchlet ref="Task"/></step>"#;
    let stage = Stage::new(&job(step));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0002]: `JobWatch` is not a step listener but a job listener
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><listener ref="JobWatch"/><batchlet ref="Task"/></step>
      |                               ^^^^^^^^ a step listener is required here
      = help: `JobWatch` is registered at tests/conformance/artifacts.rs
    "#);
}
