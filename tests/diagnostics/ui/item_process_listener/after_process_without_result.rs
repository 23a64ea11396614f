// Spec: ART-07, LISTEN-PROC-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_process_listener]
impl Sample {
    #[after_process]
    fn after(&mut self, _item: &u64) {}
}

fn main() {}
