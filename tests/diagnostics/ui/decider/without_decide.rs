// Spec: ART-05, DECIDER-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[decider]
impl Sample {
    fn which(&mut self) -> String {
        "LATE".into()
    }
}

fn main() {}
