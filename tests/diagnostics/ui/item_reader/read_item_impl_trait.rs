// Spec: ART-07
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_reader]
impl Sample {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[read_item]
    fn read(&mut self) -> impl Iterator<Item = u32> {
        0..1
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

fn main() {}
