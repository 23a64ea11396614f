// Spec: ART-07, PALG-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[logical_tx]
impl Sample {
    #[logical_tx_begin]
    fn begin(&mut self) -> u64 {
        0
    }
}

fn main() {}
