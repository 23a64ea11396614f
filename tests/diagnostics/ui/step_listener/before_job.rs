// Spec: ART-07, LISTEN-STEP-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[step_listener]
impl Sample {
    #[before_job]
    fn before(&mut self) {}
}

fn main() {}
