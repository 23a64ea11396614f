// Spec: PROC-02
use std::rc::Rc;

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self, item: &Rc<u32>) -> Option<u32> {
        Some(**item)
    }
}

fn main() {}
