// Spec: D-97
use batch_runtime::prelude::*;

pub struct Inner {}

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_artifact(prefix = "inner.")]
    inner: Inner,
}

fn main() {}
