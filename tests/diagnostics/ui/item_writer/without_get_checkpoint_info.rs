// Spec: ART-03, WRITE-08
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_writer]
impl Sample {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[write_items]
    fn write(&mut self, _items: &[u32]) {}
}

fn main() {}
