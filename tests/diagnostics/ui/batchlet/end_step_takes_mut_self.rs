// Spec: ART-07, BLET-10
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
    fn cancel(&self) {}

    #[end_step]
    fn end(&mut self) {}
}

fn main() {}
