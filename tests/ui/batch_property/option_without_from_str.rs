// Spec: BPROP-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_property(name = "files")]
    files: Option<Vec<String>>,
}

fn main() {}
