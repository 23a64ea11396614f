// Spec: PALG-07
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[sub_job_analyzer]
impl Sample {}

fn main() {}
