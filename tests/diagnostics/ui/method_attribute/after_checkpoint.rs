// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[after_checkpoint]
    pub fn method(&mut self) {}
}

fn main() {}
