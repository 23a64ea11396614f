// Spec: ART-07, PROC-02, PROC-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self, item: &u32) -> u32 {
        *item
    }
}

fn main() {}
