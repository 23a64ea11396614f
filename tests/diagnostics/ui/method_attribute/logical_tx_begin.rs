// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[logical_tx_begin]
    pub fn method(&mut self) {}
}

fn main() {}
