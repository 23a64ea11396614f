// Spec: ART-03, PROC-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    fn helper(&mut self) {}
}

fn main() {}
