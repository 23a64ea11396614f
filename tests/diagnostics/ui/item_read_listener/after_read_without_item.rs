// Spec: ART-07, LISTEN-READ-03
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_read_listener]
impl Sample {
    #[after_read]
    fn after(&mut self) {}
}

fn main() {}
