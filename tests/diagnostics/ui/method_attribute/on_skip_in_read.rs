// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[on_skip_in_read]
    pub fn method(&mut self) {}
}

fn main() {}
