// Spec: ART-03, BLET-06
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[batchlet]
impl Sample {
    #[process]
    fn process(&self) -> String {
        String::new()
    }

    fn stop(&self) {}
}

fn main() {}
