// Spec: ART-07, PALG-09
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[sub_job_analyzer]
impl Sample {
    #[analyze_exit_status]
    fn analyze(&mut self, _exit_status: String) {}
}

fn main() {}
