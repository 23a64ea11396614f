// Spec: ART-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub union Sample {
    one: u32,
}

fn main() {}
