// Spec: BLET-06
use std::cell::Cell;

use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample {
    count: Cell<u32>,
}

#[batchlet]
impl Sample {
    #[process]
    fn process(&self) -> String {
        self.count.get().to_string()
    }

    #[cancel]
    fn cancel(&self) {}
}

fn main() {}
