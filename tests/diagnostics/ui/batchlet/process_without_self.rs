// Spec: ART-07, BLET-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[batchlet]
impl Sample {
    #[process]
    fn process() -> String {
        String::new()
    }

    #[cancel]
    fn cancel(&self) {}
}

fn main() {}
