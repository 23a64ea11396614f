// Spec: PROC-02
use batch_runtime::prelude::*;

struct Record;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self, _item: Record) -> Option<u32> {
        None
    }
}

fn main() {}
