// Spec: ART-07, PALG-08
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[sub_job_analyzer]
impl Sample {
    #[analyze_collector_data]
    fn analyze(&mut self) {}
}

fn main() {}
