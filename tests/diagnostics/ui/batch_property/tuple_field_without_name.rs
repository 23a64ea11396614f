// Spec: BPROP-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample(#[batch_property(value = "10")] u32);

fn main() {}
