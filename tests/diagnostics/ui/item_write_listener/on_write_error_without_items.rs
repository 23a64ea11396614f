// Spec: ART-07, LISTEN-WRITE-04
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_write_listener]
impl Sample {
    #[on_write_error]
    fn error(&mut self, _ex: &BatchError) {}
}

fn main() {}
