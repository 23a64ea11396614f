// Spec: CTX-02, CTX-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_context]
    step: String,
}

fn main() {}
