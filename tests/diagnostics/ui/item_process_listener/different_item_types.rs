// Spec: LISTEN-PROC-02, LISTEN-PROC-05, CHUNK-LOOP-17
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_process_listener]
impl Sample {
    #[before_process]
    fn before(&mut self, _item: &u64) {}

    #[on_process_error]
    fn error(&mut self, _ex: &BatchError, _item: &u32) {}
}

fn main() {}
