// Spec: BPROP-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_property(name = "wait")]
    wait: Option<std::time::Duration>,
}

fn main() {}
