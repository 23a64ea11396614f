// Spec: ART-07, LISTEN-CKPT-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_listener]
impl Sample {
    #[before_checkpoint]
    fn before(&mut self, _position: u64) {}
}

fn main() {}
