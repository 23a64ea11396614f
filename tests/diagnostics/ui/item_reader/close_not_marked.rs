// Spec: ART-05, READ-05
#![deny(deprecated)]
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_reader]
impl Sample {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[read_item]
    fn read(&mut self) -> Option<u64> {
        None
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> u64 {
        0
    }

    fn close(&mut self) {}
}

fn main() {}
