// Spec: ART-07, PALG-06
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[sub_job_collector]
impl Sample {
    #[collect_sub_job_data]
    fn collect(&mut self) -> u64 {
        0
    }
}

fn main() {}
