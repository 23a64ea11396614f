// Spec: ART-03, BLET-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[batchlet]
impl Sample {
    #[cancel]
    fn cancel(&self) {}
}

fn main() {}
