// Spec: ART-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample<T>(T);

#[item_reader]
impl<T: Default + Send> Sample<T> {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[read_item]
    fn read(&mut self) -> Option<u32> {
        None
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

fn main() {}
