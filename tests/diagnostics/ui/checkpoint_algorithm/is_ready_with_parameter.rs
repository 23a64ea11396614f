// Spec: ART-07, CKALG-06
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_algorithm]
impl Sample {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self, _items: usize) -> bool {
        true
    }
}

fn main() {}
