// Spec: ART-03, WRITE-05
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_writer]
impl Sample {
    #[write_items]
    fn write(&mut self, _items: &[u32]) {}

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

fn main() {}
