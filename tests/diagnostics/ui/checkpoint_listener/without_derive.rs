// Spec: ART-10, LISTEN-CKPT-01
use batch_runtime::prelude::*;

struct Sample;

#[checkpoint_listener]
impl Sample {
    #[after_checkpoint]
    fn after(&mut self) {}
}

fn main() {}
