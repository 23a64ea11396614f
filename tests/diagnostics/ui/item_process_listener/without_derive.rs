// Spec: ART-10, LISTEN-PROC-01
use batch_runtime::prelude::*;

struct Sample;

#[item_process_listener]
impl Sample {
    #[before_process]
    fn before(&mut self, _item: &u64) {}
}

fn main() {}
