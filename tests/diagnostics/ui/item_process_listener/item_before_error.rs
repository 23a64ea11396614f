// Spec: ART-07, LISTEN-PROC-05
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_process_listener]
impl Sample {
    #[on_process_error]
    fn error(&mut self, _item: &u64, _ex: &BatchError) {}
}

fn main() {}
