// Spec: BPROP-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_property(name = NAME)]
    limit: u32,
}

fn main() {}
