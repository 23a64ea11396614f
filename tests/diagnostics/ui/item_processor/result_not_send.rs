// Spec: PROC-02, PROC-03
use std::rc::Rc;

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_processor]
impl Sample {
    #[process_item]
    fn process(&mut self, item: &u32) -> Option<Rc<u32>> {
        Some(Rc::new(*item))
    }
}

fn main() {}
