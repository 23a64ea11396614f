// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[analyze_collector_data]
    pub fn method(&mut self) {}
}

fn main() {}
