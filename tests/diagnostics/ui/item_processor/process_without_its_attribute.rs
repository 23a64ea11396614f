// Spec: ART-03, PROC-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    fn process(&mut self, item: &u32) -> Option<u32> {
        Some(*item)
    }
}

fn main() {}
