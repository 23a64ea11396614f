// Spec: LISTEN-SKIP-01
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[skip_listener]
impl Sample {}

fn main() {}
