// Spec: LISTEN-JOB-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[job_listener]
impl Sample {
    #[afterjob]
    fn after(&mut self) {}
}

fn main() {}
