// Spec: ART-07, LISTEN-JOB-05
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[job_listener]
impl Sample {
    #[after_step]
    fn after(&mut self) -> String {
        String::new()
    }
}

fn main() {}
