// Spec: ART-07, BLET-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[batchlet]
impl Sample {
    #[process]
    fn process(&self) -> bool {
        true
    }

    #[cancel]
    fn cancel(&self) {}
}

fn main() {}
