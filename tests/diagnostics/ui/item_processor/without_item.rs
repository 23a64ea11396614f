// Spec: ART-07, PROC-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self) -> Option<u32> {
        None
    }
}

fn main() {}
