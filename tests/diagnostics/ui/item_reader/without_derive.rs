// Spec: ART-10
use batch_runtime::prelude::*;

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
}

fn main() {}
