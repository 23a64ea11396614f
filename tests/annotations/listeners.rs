//! Job and step listeners: several roles on one type, one method with two attributes.
//!
//! Spec: LISTEN-JOB-01, LISTEN-JOB-02, LISTEN-JOB-03, LISTEN-JOB-04, LISTEN-JOB-05, LISTEN-JOB-06, LISTEN-STEP-01
//! Spec: LISTEN-STEP-02, LISTEN-STEP-03, CTX-02, CTX-05
#![deny(warnings)]

use batch_runtime::prelude::*;

// Several roles on one type, and one method with two attributes.
#[derive(BatchArtifact)]
struct Log {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: Option<StepContext>,
    lines: Vec<String>,
}

#[job_listener]
impl Log {
    #[before_job]
    #[after_job]
    fn job(&mut self) {
        self.lines.push(self.job.execution_name());
    }

    #[before_step]
    fn before_step(&mut self) -> Result<(), std::io::Error> {
        self.lines
            .extend(self.step.as_ref().map(|step| step.id().to_owned()));
        Ok(())
    }

    #[after_step]
    fn after_step(&self) {}
}

#[step_listener]
impl Log {
    #[before_step]
    fn begin(&mut self) {
        self.lines.clear();
    }

    #[after_step]
    fn end(&self) -> Result<(), BatchError> {
        Ok(())
    }
}

#[derive(BatchArtifact)]
struct OnlyAfter;

#[step_listener("only-after")]
impl OnlyAfter {
    #[after_step]
    fn report(&self) {}
}

#[test]
fn every_artifact_is_registered() {
    assert_eq!(
        super::registered(module_path!()),
        [
            ("job_listener", "Log"),
            ("step_listener", "Log"),
            ("step_listener", "only-after")
        ]
    );
}
