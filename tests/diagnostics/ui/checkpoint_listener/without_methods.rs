// Spec: LISTEN-CKPT-01
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_listener]
impl Sample {}

fn main() {}
