// Spec: ART-10, PALG-07
use batch_runtime::prelude::*;

struct Sample;

#[sub_job_analyzer]
impl Sample {
    #[analyze_exit_status]
    fn analyze(&mut self, _exit_status: &str) {}
}

fn main() {}
