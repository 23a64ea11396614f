// Spec: ART-07, LISTEN-CKPT-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_listener]
impl Sample {
    #[after_checkpoint]
    fn after(&mut self) -> bool {
        true
    }
}

fn main() {}
