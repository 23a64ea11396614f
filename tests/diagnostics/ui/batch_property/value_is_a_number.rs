// Spec: BPROP-01, BPROP-05
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_property(name = "limit", value = 10)]
    limit: u32,
}

fn main() {}
