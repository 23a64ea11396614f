// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[is_ready_to_checkpoint]
    pub fn method(&mut self) {}
}

fn main() {}
