// Spec: ART-07
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_reader]
impl Sample {
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

    #[get_item_origin]
    fn item_origin(&self) -> (String, u64) {
        (String::new(), 10)
    }
}

fn main() {}
