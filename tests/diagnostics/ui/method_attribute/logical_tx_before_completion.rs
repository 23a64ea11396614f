// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[logical_tx_before_completion]
    pub fn method(&mut self) {}
}

fn main() {}
