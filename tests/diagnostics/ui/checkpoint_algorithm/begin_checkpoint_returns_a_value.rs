// Spec: ART-07, CKALG-05
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_algorithm]
impl Sample {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> bool {
        true
    }

    #[begin_checkpoint]
    fn begin(&mut self) -> u32 {
        0
    }
}

fn main() {}
