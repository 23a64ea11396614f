// Spec: ART-05, CKALG-01, CKALG-06
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[checkpoint_algorithm]
impl Sample {
    #[begin_checkpoint]
    fn begin(&mut self) {}
}

fn main() {}
