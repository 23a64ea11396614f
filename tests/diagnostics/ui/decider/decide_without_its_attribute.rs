// Spec: ART-05, DECIDER-02
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Sample;

#[decider]
impl Sample {
    fn decide(&mut self) -> String {
        "LATE".into()
    }
}

fn main() {}
