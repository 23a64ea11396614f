// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[before_process]
    pub fn method(&mut self) {}
}

fn main() {}
