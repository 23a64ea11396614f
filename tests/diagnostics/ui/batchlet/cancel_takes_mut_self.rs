// Spec: ART-07, BLET-06
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[batchlet]
impl Sample {
    #[process]
    fn process(&self) -> String {
        String::new()
    }

    #[cancel]
    fn cancel(&mut self) {}
}

fn main() {}
