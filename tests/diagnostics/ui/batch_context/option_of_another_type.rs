// Spec: CTX-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_context]
    step: Option<u32>,
}

fn main() {}
