// Spec: ART-03, PALG-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[logical_tx]
impl Sample {
    #[close]
    fn close(&mut self) {}
}

fn main() {}
