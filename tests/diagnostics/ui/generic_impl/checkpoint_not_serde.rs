// Spec: READ-03, READ-08
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample<C> {
    position: Option<C>,
}

#[item_reader]
impl<C: Clone + Send + 'static> Sample<C> {
    #[open]
    fn open(&mut self, checkpoint: Option<C>) {
        self.position = checkpoint;
    }

    #[read_item]
    fn read(&mut self) -> Option<u32> {
        None
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<C, BatchError> {
        self.position.clone().ok_or_else(|| BatchError::msg("not open"))
    }
}

fn main() {}
