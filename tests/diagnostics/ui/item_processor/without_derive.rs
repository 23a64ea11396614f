// Spec: ART-10
use batch_runtime::prelude::*;

struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self, item: &u32) -> Option<u32> {
        Some(*item)
    }
}

fn main() {}
