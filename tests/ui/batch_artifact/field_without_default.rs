// Spec: ART-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    file: std::fs::File,
}

fn main() {}
