// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[on_retry_item]
    pub fn method(&mut self) {}
}

fn main() {}
