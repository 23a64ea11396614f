// Spec: ART-07, LISTEN-STEP-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[step_listener]
impl Sample {
    #[after_step]
    fn after(&mut self) -> String {
        String::new()
    }
}

fn main() {}
