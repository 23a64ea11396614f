// Spec: ART-10
use batch_runtime::prelude::*;

struct Sample;

#[batchlet]
impl Sample {
    #[process]
    fn process(&self) -> String {
        String::new()
    }

    #[cancel]
    fn cancel(&self) {}
}

fn main() {}
