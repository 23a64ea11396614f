// Spec: ART-07, BLET-02
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

    #[begin_step]
    fn begin(&mut self) {}
}

fn main() {}
