// Spec: D-97
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Inner {}

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_artifact(prefix = "inner.", prefix = "other.")]
    inner: Inner,
}

fn main() {}
