// Spec: FAULT-04
// A policy that decides nothing.
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Policy;

#[skip_policy]
impl Policy {}

fn main() {}
