// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[write_items]
    pub fn method(&mut self) {}
}

fn main() {}
