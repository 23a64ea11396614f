// Spec: PALG-10
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[logical_tx]
impl Sample {}

fn main() {}
