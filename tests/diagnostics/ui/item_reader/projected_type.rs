// Spec: ART-01
use batch_runtime::prelude::*;

struct Sample;

trait Own {
    type Type;
}

impl Own for u32 {
    type Type = Sample;
}

#[item_reader]
impl <u32 as Own>::Type {
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
