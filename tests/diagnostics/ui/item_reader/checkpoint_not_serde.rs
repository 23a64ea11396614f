// Spec: READ-04, READ-08
use batch_runtime::prelude::*;

struct Position;

#[derive(BatchArtifact)]
struct Sample;

#[item_reader]
impl Sample {
    #[open]
    fn open(&mut self, _checkpoint: Option<Position>) {}

    #[read_item]
    fn read(&mut self) -> Option<u32> {
        None
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<Position, std::io::Error> {
        Ok(Position)
    }
}

fn main() {}
