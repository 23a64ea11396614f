// Spec: ART-03, LISTEN-READ-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_read_listener]
impl Sample {
    #[on_read_eror]
    fn error(&mut self, _ex: &BatchError) {}
}

fn main() {}
