// Spec: ART-03, LISTEN-CKPT-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_listener]
impl Sample {
    #[end_checkpoint]
    fn end(&mut self) {}
}

fn main() {}
