// Spec: ART-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[step_listener]
impl Drop for Sample {
    #[after_step]
    fn drop(&mut self) {}
}

fn main() {}
