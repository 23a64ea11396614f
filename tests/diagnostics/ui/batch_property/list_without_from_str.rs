// Spec: BPROP-10
use batch_runtime::prelude::*;

struct File;

#[derive(BatchArtifact)]
struct Sample {
    #[batch_property(name = "files")]
    files: Vec<File>,
}

fn main() {}
