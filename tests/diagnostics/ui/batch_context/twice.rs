// Spec: CTX-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_context]
    #[batch_context]
    step: StepContext,
}

fn main() {}
