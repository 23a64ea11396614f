// Spec: ART-13
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample {
    #[default]
    begin: u64,
    #[default(1)]
    #[batch_property]
    both: u64,
}

fn main() {}
