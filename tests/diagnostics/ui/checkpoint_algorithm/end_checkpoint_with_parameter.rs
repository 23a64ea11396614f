// Spec: ART-07, CKALG-07
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_algorithm]
impl Sample {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> bool {
        true
    }

    #[end_checkpoint]
    fn end(&mut self, _items: u32) {}
}

fn main() {}
