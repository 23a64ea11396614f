// Spec: ART-03, ART-07
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[item_reader(nmae = "reader")]
impl Sample {
    #[open]
    fn open(self) {}

    #[read_item]
    async fn read(&mut self, _limit: usize) -> Option<u32> {
        None
    }
}

fn main() {}
