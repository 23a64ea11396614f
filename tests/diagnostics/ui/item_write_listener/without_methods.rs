// Spec: LISTEN-WRITE-01
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_write_listener]
impl Sample {}

fn main() {}
