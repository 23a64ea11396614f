// Spec: D-97
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_artifact]
    #[batch_context]
    step: StepContext,
}

fn main() {}
