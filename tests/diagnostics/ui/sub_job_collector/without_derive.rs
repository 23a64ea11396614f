// Spec: ART-10, PALG-05
use batch_runtime::prelude::*;

struct Sample;

#[sub_job_collector]
impl Sample {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Option<u64> {
        None
    }
}

fn main() {}
