// Spec: LISTEN-PROC-01
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_process_listener]
impl Sample {}

fn main() {}
