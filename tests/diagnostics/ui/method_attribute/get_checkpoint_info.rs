// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[get_checkpoint_info]
    pub fn method(&mut self) {}
}

fn main() {}
