// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[before_read]
    pub fn method(&mut self) {}
}

fn main() {}
