// Spec: ART-10, LISTEN-JOB-01
use batch_runtime::prelude::*;

struct Sample;

#[job_listener]
impl Sample {
    #[before_step]
    fn before(&mut self) {}
}

fn main() {}
