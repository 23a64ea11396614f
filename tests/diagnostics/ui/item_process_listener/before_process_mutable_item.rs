// Spec: ART-07, LISTEN-PROC-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_process_listener]
impl Sample {
    #[before_process]
    fn before(&mut self, _item: &mut u64) {}
}

fn main() {}
