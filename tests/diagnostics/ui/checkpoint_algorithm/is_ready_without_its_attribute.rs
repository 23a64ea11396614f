// Spec: ART-05, CKALG-06
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_algorithm]
impl Sample {
    fn is_ready(&mut self) -> bool {
        true
    }
}

fn main() {}
