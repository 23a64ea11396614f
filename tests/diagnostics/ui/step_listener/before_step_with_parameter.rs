// Spec: ART-07, LISTEN-STEP-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[step_listener]
impl Sample {
    #[before_step]
    fn before(&mut self, _step: StepContext) {}
}

fn main() {}
