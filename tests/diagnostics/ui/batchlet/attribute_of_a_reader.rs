// Spec: ART-07
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

    #[read_item]
    fn read(&mut self) -> Option<u32> {
        None
    }
}

fn main() {}
