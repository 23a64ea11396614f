// Spec: ART-07, WRITE-07
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_writer]
impl Sample {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[write_items]
    fn write(&mut self, _item: &u32) {}

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

fn main() {}
