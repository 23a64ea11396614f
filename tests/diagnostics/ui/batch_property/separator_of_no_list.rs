// Spec: BPROP-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample {
    #[batch_property(name = "limit", separator = ";")]
    limit: u32,
}

fn main() {}
