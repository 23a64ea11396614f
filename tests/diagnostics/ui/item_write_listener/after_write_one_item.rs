// Spec: ART-07, LISTEN-WRITE-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_write_listener]
impl Sample {
    #[after_write]
    fn after(&mut self, _item: &u64) {}
}

fn main() {}
