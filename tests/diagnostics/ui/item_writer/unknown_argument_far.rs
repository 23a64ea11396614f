// Spec: WRITE-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_writer(threads = 4)]
impl Sample {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[write_items]
    fn write(&mut self, _items: &[u32]) {}

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

fn main() {}
