// Spec: ART-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
pub struct Rows<T> {
    rows: Vec<T>,
}

#[item_reader]
impl<T: Send + 'static> Rows<T> {
    #[open]
    fn open(&mut self, _checkpoint: Option<u64>) {}

    #[read_item]
    fn read(&mut self) -> Option<T> {
        self.rows.pop()
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        0
    }
}

#[item_reader]
type Sample = Rows;

fn main() {}
