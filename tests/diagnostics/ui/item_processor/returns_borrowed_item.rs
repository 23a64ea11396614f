// Spec: ART-07, PROC-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process<'a>(&'a mut self, item: &'a u32) -> Option<&'a u32> {
        Some(item)
    }
}

fn main() {}
