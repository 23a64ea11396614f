// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[end_step]
    pub fn method(&mut self) {}
}

fn main() {}
