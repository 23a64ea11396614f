// Spec: LISTEN-WRITE-02, LISTEN-WRITE-03, CHUNK-LOOP-17
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_write_listener]
impl Sample {
    #[before_write]
    fn before(&mut self, _items: &[u64]) {}

    #[after_write]
    fn after(&mut self, _items: &[u32]) {}
}

fn main() {}
