// Spec: BPROP-02, CTX-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_property(name = "step")]
    #[batch_context]
    step: StepContext,
}

fn main() {}
