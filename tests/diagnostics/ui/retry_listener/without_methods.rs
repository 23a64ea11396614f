// Spec: LISTEN-RETRY-01
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[retry_listener]
impl Sample {}

fn main() {}
