// Spec: ART-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[step_listener("one")]
impl Sample {
    #[before_step]
    fn before(&mut self) {}
}

#[step_listener("two")]
impl Sample {
    #[after_step]
    fn after(&mut self) {}
}

fn main() {}
