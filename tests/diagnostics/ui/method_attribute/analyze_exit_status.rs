// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[analyze_exit_status]
    pub fn method(&mut self) {}
}

fn main() {}
