// Spec: ART-07, READ-04, READ-08
use batch_runtime::prelude::*;

#[derive(serde::Serialize, serde::Deserialize)]
struct Position {
    line: u64,
}

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
    fn checkpoint(&mut self) -> Position {
        Position { line: 0 }
    }
}

fn main() {}
