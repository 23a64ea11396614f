// Spec: ART-07, DECIDER-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[decider]
impl Sample {
    #[decide]
    fn which(&mut self) -> bool {
        true
    }
}

fn main() {}
