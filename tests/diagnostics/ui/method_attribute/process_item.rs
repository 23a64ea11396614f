// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[process_item]
    pub fn method(&mut self) {}
}

fn main() {}
