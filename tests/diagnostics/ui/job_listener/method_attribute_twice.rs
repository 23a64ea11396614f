// Spec: ART-04, LISTEN-JOB-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[job_listener]
impl Sample {
    #[before_step]
    fn before(&mut self) {}

    #[before_step]
    fn before_too(&mut self) {}
}

fn main() {}
