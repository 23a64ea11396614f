// Spec: D-97
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Inner {}

pub struct Sample {
    #[batch_artifact(prefix = "inner.")]
    pub inner: Inner,
}

fn main() {}
