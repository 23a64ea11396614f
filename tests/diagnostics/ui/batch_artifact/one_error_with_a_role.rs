// Spec: ART-10
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Sample {
    #[batch_property(name = "")]
    name: String,
}

#[step_listener]
impl Sample {
    #[before_step]
    fn before(&mut self) {}
}

fn main() {}
