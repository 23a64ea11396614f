// Spec: D-97
use batch_runtime::prelude::*;

pub struct Inner {}

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_artifact]
    inner: Inner,
}

#[step_listener]
impl Sample {
    #[before_step]
    fn before(&mut self) {}
}

fn main() {}
