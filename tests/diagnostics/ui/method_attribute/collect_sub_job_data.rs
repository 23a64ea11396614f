// Spec: ART-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

impl Sample {
    #[collect_sub_job_data]
    pub fn method(&mut self) {}
}

fn main() {}
