// Spec: ART-10, PALG-10
use batch_runtime::prelude::*;

struct Sample;

#[logical_tx]
impl Sample {
    #[logical_tx_rollback]
    fn undo(&mut self) {}
}

fn main() {}
