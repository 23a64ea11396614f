// Spec: ASYNC-01
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[batchlet]
impl Sample {
    #[process]
    fn process(&self) -> String {
        String::new()
    }

    #[cancel]
    async fn cancel(&self) {}
}

fn main() {}
