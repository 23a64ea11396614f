// Spec: ART-10, CKALG-01
use batch_runtime::prelude::*;

struct Sample;

#[checkpoint_algorithm]
impl Sample {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> bool {
        true
    }
}

fn main() {}
