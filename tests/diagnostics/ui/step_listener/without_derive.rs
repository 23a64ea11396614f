// Spec: ART-10, LISTEN-STEP-01
use batch_runtime::prelude::*;

struct Sample;

#[step_listener]
impl Sample {
    #[before_step]
    fn before(&mut self) {}
}

fn main() {}
