// Spec: ART-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[batchlet]
    pub fn process(&self) -> String {
        String::new()
    }
}

fn main() {}
