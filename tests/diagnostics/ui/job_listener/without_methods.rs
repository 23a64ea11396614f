// Spec: LISTEN-JOB-01
#![deny(deprecated)]

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[job_listener]
impl Sample {
    fn before(&mut self) {}
}

fn main() {}
