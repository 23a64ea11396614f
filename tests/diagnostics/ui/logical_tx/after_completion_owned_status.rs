// Spec: ART-07, PALG-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[logical_tx]
impl Sample {
    #[logical_tx_after_completion]
    fn after(&mut self, _status: String) {}
}

fn main() {}
