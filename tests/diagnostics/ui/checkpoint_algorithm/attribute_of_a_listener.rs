// Spec: ART-03, CKALG-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_algorithm]
impl Sample {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> bool {
        true
    }

    #[before_checkpoint]
    fn begin(&mut self) {}
}

fn main() {}
