// Spec: ART-07, LISTEN-READ-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_read_listener]
impl Sample {
    #[before_read]
    fn before(&mut self, _item: &u64) {}
}

fn main() {}
