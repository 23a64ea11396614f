// Spec: ART-07, LISTEN-JOB-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[job_listener]
impl Sample {
    #[before_step]
    fn before(&mut self, _step: StepContext) {}
}

fn main() {}
