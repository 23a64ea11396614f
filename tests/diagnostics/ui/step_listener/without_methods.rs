// Spec: LISTEN-STEP-01
#![deny(deprecated)]

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[step_listener]
impl Sample {
    fn before(&mut self) {}
}

fn main() {}
