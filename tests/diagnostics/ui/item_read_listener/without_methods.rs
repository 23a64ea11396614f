// Spec: LISTEN-READ-01
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_read_listener]
impl Sample {}

fn main() {}
