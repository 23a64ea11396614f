// Spec: LISTEN-CKPT-03
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_listener]
impl Sample {
    #[before_checkpoint]
    fn before(&mut self) {}

    fn after_checkpoint(&mut self) {}
}

fn main() {}
