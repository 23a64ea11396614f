// Spec: ART-03, WRITE-07
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_writer]
impl Sample {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

fn main() {}
