// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[after_processor]
    pub fn method(&mut self) {}
}

fn main() {}
