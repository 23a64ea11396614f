// Spec: ART-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub enum Sample {
    One,
}

fn main() {}
