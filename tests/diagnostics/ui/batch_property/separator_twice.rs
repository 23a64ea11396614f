// Spec: BPROP-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample {
    #[batch_property(name = "limits", separator = ";", separator = ",")]
    limits: Vec<u32>,
}

fn main() {}
